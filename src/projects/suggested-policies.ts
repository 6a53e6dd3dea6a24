import { compileForSaving } from '../authz/policy.ts';
import { PolicyError } from '../authz/policy-ast.ts';
import { readGraphSchema } from '../graph/graph-schema.ts';
import { httpTriggersOf, type Manifest } from '../plugins/manifest.ts';

/**
 * What is wrong with the policies that a plugin suggests: no administrator could accept them.
 *
 * @returns one line each, with the trigger; empty when they can be saved
 */
export function suggestedPolicyMistakes(manifest: Manifest): string[] {
  const schema = readGraphSchema();
  return httpTriggersOf(manifest).flatMap(({ access, name }) => {
    if (access === undefined || access.policy === '') return [];
    try {
      compileForSaving(access.policy, schema);
      return [];
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error;
      return error.all.map(e => `trigger ${name}: its policy ${access.policy} cannot be saved: ${e.message}`);
    }
  });
}
