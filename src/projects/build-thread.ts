import { compilePlugin as buildAssemblyScript } from '../../sdk/assemblyscript/build.ts';
import { buildPlugin as buildC } from '../../sdk/c/build.ts';
import { buildPlugin as buildGo } from '../../sdk/go/build.ts';
import { buildPlugin as buildRust } from '../../sdk/rust/build.ts';
import { buildPlugin as buildTypeScript } from '../../sdk/typescript/build.ts';
import { messageOf, OperatorError } from '../base/errors.ts';
import type { Language } from './project.ts';

/** The thread that builds plugins: the top level of a plugin runs in it, which may not end. */

export type BuildOrder = { language: Language; entry: string };

/** The module; or mistakes in the sources, one line each; or a problem of this installation. */
export type BuildAnswer =
  | { kind: 'built'; module: Uint8Array; warnings: string[] }
  | { kind: 'mistakes'; text: string }
  | { kind: 'unable'; text: string };

const BUILDERS: Record<Language, (entry: string) => Promise<{ module: Uint8Array; warnings: string[] }>> = {
  ts: buildTypeScript,
  go: buildGo,
  rust: buildRust,
  c: buildC,
  as: buildAssemblyScript,
};

/** Builds one plugin. */
export default async function buildInThread({ entry, language }: BuildOrder): Promise<BuildAnswer> {
  try {
    return { kind: 'built', ...(await BUILDERS[language](entry)) };
  } catch (error) {
    return { kind: error instanceof OperatorError ? 'unable' : 'mistakes', text: messageOf(error) };
  }
}
