import fs from 'node:fs';
import path from 'node:path';
import { packFrontend } from '../../sdk/pack-frontend.ts';
import { isPlaceKnown } from '../../sdk/source-warnings.ts';
import { customSections } from '../abi/custom-section.ts';
import { OperatorError } from '../base/errors.ts';
import { ThreadEnded, WorkerTask } from '../base/worker-task.ts';
import type { Finding } from '../plugins/finding.ts';
import { inspectModule, UNDECLARED } from '../plugins/inspect.ts';
import { type Manifest, parseManifest, permissionsOf } from '../plugins/manifest.ts';
import { manifestPlace } from '../plugins/manifest-place.ts';
import type { BuildAnswer, BuildOrder } from './build-thread.ts';
import type { Language, Project } from './project.ts';
import { suggestedPolicyMistakes } from './suggested-policies.ts';

/** Time for a build, the top level of the plugin included. */
const BUILD_MS = 60_000;
/** A thread without work ends after this; until then a build needs no new one. */
const IDLE_MS = 600_000;

const builds = new WorkerTask<BuildOrder, BuildAnswer>({
  file: new URL('./build-thread.ts', import.meta.url),
  does: 'builds plugins',
  threads: 1,
  deadlineMs: BUILD_MS,
  idleMs: IDLE_MS,
  // Compilers look for their caches and tools in it.
  sharesEnvironment: true,
});

const FIRST = 'run it again; the first build with a toolchain takes longest';
/** What helps a build that does not end. */
const LATE: Readonly<Record<Language, string>> = {
  ts: 'is there a loop without an end at the top level of a file?',
  as: 'functions that call themselves may keep the compiler busy; try "optimizeLevel": 0 in asconfig.json',
  ...{ go: FIRST, rust: FIRST, c: FIRST },
};

/** Ends the thread that builds. */
export const endBuilds = (): Promise<void> => builds.end();

/** The sources of a plugin are wrong: a line for each mistake, with its file and position. */
export class SourceMistakes extends OperatorError {
  override readonly exitCode: number = 3;
}

/** A plugin as it was built. */
export type BuiltModule = {
  module: Uint8Array;
  manifest: Manifest;
  /** The ZIP of its frontend; null for none. */
  frontend: Uint8Array | null;
  /** Warnings of the build, one line each. */
  warnings: string[];
};

/** A built plugin with the findings of the gate of the upload. */
export type BuiltProject = BuiltModule & {
  permissions: string[];
  /** Hints and warnings; a module with a refusal is not built. */
  findings: Finding[];
  /** How long it took. */
  ms: number;
};

/** What of a finding is shown to an author. */
export type ShownFinding = Pick<Finding, 'level' | 'message' | 'where'>;

/** One line for people. */
export const findingLine = ({ level, message, where }: ShownFinding): string =>
  `${level}: ${where === undefined ? '' : `${where}: `}${message}`;

/** Findings without those that a warning of the build tells with the place of the call. */
export const withoutTold = <F extends ShownFinding>(findings: readonly F[], warnings: readonly string[]): F[] =>
  findings.filter(({ message }) => {
    const permission = UNDECLARED.exec(message)?.[1];
    return permission === undefined || !isPlaceKnown(warnings, permission);
  });

/** Administrators read the reason of each requirement before they accept it. */
const withoutReason = ({ requirements }: Manifest): string[] =>
  requirements
    .filter(r => r.description.trim() === '')
    .map(
      r =>
        `the requirement "${r.kind}${r.target === undefined ? '' : `:${r.target}`}" has no reason: say in a sentence what it is for; the administrator reads it before the installation`,
    );

async function packedFrontend(folder: string): Promise<Uint8Array> {
  const index = path.join(folder, 'index.html');
  if (!fs.existsSync(index)) throw new SourceMistakes(`there is no ${index}: a frontend begins with it`);
  return await packFrontend(folder);
}

/**
 * Builds a plugin.
 *
 * @throws SourceMistakes when the sources are wrong; OperatorError when something is not installed
 */
export async function buildModule({ entry, frontend, language }: Project): Promise<BuiltModule> {
  const answer = await builds.run({ entry, language }).catch((error: unknown) => {
    if (!(error instanceof ThreadEnded) || error.why === 'other') throw error;
    throw new SourceMistakes(
      error.why === 'deadline'
        ? `the build did not end within ${BUILD_MS / 1000} s: ${LATE[language]}`
        : 'the build takes too much memory',
    );
  });
  if (answer.kind === 'unable') throw new OperatorError(answer.text);
  if (answer.kind === 'mistakes') throw new SourceMistakes(answer.text);
  const { module, warnings } = answer;
  const [section] = customSections(module, 'plugin.manifest');
  if (section === undefined) throw new Error('bug: the build has embedded no manifest');
  const text = Buffer.from(section.content).toString();
  const read = parseManifest(text);
  if (!read.ok)
    throw new SourceMistakes(
      read.errors.map(e => `refusal: ${manifestPlace(e.pointer, text)}: ${e.message}`).join('\n'),
    );
  const wrong = suggestedPolicyMistakes(read.manifest);
  if (wrong.length > 0) throw new SourceMistakes(wrong.map(line => `refusal: ${line}`).join('\n'));
  const packed = frontend === null ? null : await packedFrontend(frontend);
  return {
    module,
    manifest: read.manifest,
    frontend: packed,
    warnings: [...warnings, ...withoutReason(read.manifest)],
  };
}

/**
 * Builds a plugin and passes it through the gate of the upload.
 *
 * @throws SourceMistakes when the sources are wrong or the gate refuses the module; OperatorError when something is not
 *   installed
 */
export async function buildProject(project: Project): Promise<BuiltProject> {
  const begun = performance.now();
  const built = await buildModule(project);
  const { findings } = inspectModule(built.module);
  const refusals = findings.filter(f => f.level === 'refusal');
  if (refusals.length > 0) throw new SourceMistakes(refusals.map(findingLine).join('\n'));
  // How the start behaves is known once it runs, at the upload.
  const told = withoutTold(
    findings.filter(f => f.rule !== 'start'),
    built.warnings,
  );
  return { ...built, permissions: permissionsOf(built.manifest), findings: told, ms: performance.now() - begun };
}
