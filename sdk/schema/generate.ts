import fs from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { ABI_NEWEST } from '../../src/abi/host-functions.ts';
import { httpTrigger, manifest, messengerTrigger, requirement, suggestedAccess } from '../../src/plugins/manifest.ts';
import { projectFile } from '../../src/projects/project.ts';

/**
 * Makes the JSON Schemas of what authors write from the checks of the program: `npm run schema`. `plugin new` puts them
 * into the folder of a plugin, where editors find them.
 */

const FOLDER = import.meta.dirname;

type Schema = z.core.JSONSchema.BaseSchema;

/** What is added to the schema of a check. */
type Condition = (schema: Schema) => Schema;

const needsTarget: Condition = () => ({
  anyOf: [{ properties: { kind: { not: { const: 'plugins:call' } } } }, { required: ['target'] }],
});

/** A member that is there and true. */
const has = (name: string): Schema => ({ properties: { [name]: { const: true } }, required: [name] });
const PUBLIC: Schema = {
  properties: {
    public: { const: true },
    users: { const: false },
    service_keys: { const: false },
    policy: { const: '' },
  },
  required: ['public'],
};
const LOGGED_IN: Schema = {
  properties: { public: { const: false } },
  anyOf: [has('users'), has('service_keys')],
};
const namesCallers: Condition = () => ({ anyOf: [PUBLIC, LOGGED_IN] });

/** The words of the kits are accepted as well. */
const typeWords =
  (...words: string[]): Condition =>
  ({ properties }) => ({ properties: { ...properties, type: { type: 'string', enum: words } } });

const abiOfThisRelease: Condition = ({ properties }) => {
  const { abi } = properties ?? {};
  return { properties: { ...properties, abi: { ...(typeof abi === 'object' ? abi : {}), maximum: ABI_NEWEST } } };
};

/** What a check says that zod writes into no schema. A check with a description is another object with this definition. */
const CONDITIONS = new Map<unknown, Condition>([
  [requirement._zod.def, needsTarget],
  [suggestedAccess._zod.def, namesCallers],
  [httpTrigger._zod.def, typeWords('http', 'TriggerHTTP')],
  [messengerTrigger._zod.def, typeWords('messenger', 'TriggerMessenger')],
  [manifest._zod.def, abiOfThisRelease],
]);

/** Draft 7, which every editor knows. */
function schemaOf(check: z.ZodType, title: string, description: string): string {
  const { $schema, ...rest } = z.toJSONSchema(check, {
    target: 'draft-7',
    io: 'input',
    override({ jsonSchema, zodSchema }) {
      Object.assign(jsonSchema, CONDITIONS.get(zodSchema._zod.def)?.(jsonSchema));
    },
  });
  return `${JSON.stringify({ $schema, title, description, ...rest }, null, 2)}\n`;
}

/** The text of each file in this folder. */
export const SCHEMAS: Readonly<Record<string, () => string>> = {
  'manifest.json': () =>
    schemaOf(
      manifest,
      'Manifest of a plugin',
      'What the section plugin.manifest of a module holds. Names, paths and databases that are used twice are found by the build and the upload.',
    ),
  'plugin-host.json': () =>
    schemaOf(projectFile, 'Folder of a plugin', 'What plugin-host.json says about the folder of a plugin.'),
};

/** Path of a file in this folder. */
export const schemaPath = (name: string): string => path.join(FOLDER, name);

if (process.argv[1] === import.meta.filename)
  for (const [name, text] of Object.entries(SCHEMAS)) fs.writeFileSync(schemaPath(name), text());
