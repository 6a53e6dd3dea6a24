import fs from 'node:fs';
import path from 'node:path';
import { checkTypes, noChecker } from '../../authors/check-types.ts';
import { newProject, templatesOf, writeKit } from '../../authors/new-project.ts';
import { isTestFile, runTests } from '../../authors/run-tests.ts';
import { OperatorError, UsageError } from '../../base/errors.ts';
import { fileProblem } from '../../base/file-problem.ts';
import { inspectModule } from '../../plugins/inspect.ts';
import { type Manifest, permissionsOf, type SuggestedAccess } from '../../plugins/manifest.ts';
import { checkSignature } from '../../plugins/module-signature.ts';
import {
  type BuiltProject,
  buildProject,
  endBuilds,
  findingLine,
  SourceMistakes,
} from '../../projects/build-project.ts';
import { isLanguage, LANGUAGES, type Project, readProject } from '../../projects/project.ts';
import { jsonText } from '../print/json-text.ts';
import { writeLine } from '../print/terminal.ts';
import type { DevRemoteFlags } from '../remote/dev-remote.ts';
import type { Answer, Remote } from '../remote/remote.ts';
import { portOf } from './message-command.ts';

/** `plugin new`, `plugin build`, `plugin inspect`: what an author does without a service. */

const kilobytes = (bytes: number): string => `${Math.ceil(bytes / 1024)} KB`;

type NewFlags = { lang?: string; template?: string; json?: boolean; dev?: boolean; port?: string };

/** `plugin new NAME`. @returns what to print */
export async function newCommand(folder: string, flags: NewFlags): Promise<string> {
  const { lang = 'ts' } = flags;
  const languages = Object.entries(LANGUAGES).map(([word, name]) => `${word} (${name})`);
  if (!isLanguage(lang)) throw new UsageError(`--lang ${lang} is none of ${languages.join(', ')}`);
  const [first = ''] = templatesOf(lang);
  const template = flags.template ?? (templatesOf(lang).includes('http') ? 'http' : first);
  // Before there is a folder.
  if (flags.dev === true) await (await import('../../authors/dev-front.ts')).assertPortIsFree(portOf(flags.port));
  const files = newProject(folder, lang, template);
  if (flags.json === true) return jsonText({ folder: path.resolve(folder), language: lang, template, files });
  return [
    `${folder} is a plugin in ${LANGUAGES[lang]}:`,
    ...files.map(file => `  ${file}`),
    `run it:    plugin-host plugin dev ${folder}`,
    `test it:   plugin-host plugin test ${folder}`,
    `build it:  plugin-host plugin build ${folder}`,
  ].join('\n');
}

/** `index.ts:7` */
const POSITION = /\.\w+:\d+/;

/** Builds and checks types at the same time. @throws SourceMistakes with the mistakes of both */
async function buildChecked(project: Project): Promise<BuiltProject> {
  writeKit(project.language, project.root);
  const [built, types] = await Promise.all([
    buildProject(project).catch((error: unknown) => {
      if (error instanceof SourceMistakes) return error;
      throw error;
    }),
    checkTypes(project),
  ]);
  if (built instanceof SourceMistakes) {
    // What the compiler refuses has its position, and the type check says the same; only that one has a position for the rest.
    if (types.length === 0 || POSITION.test(built.message)) throw built;
    throw new SourceMistakes([...types, built.message].join('\n'));
  }
  if (types.length > 0) throw new SourceMistakes(types.join('\n'));
  return { ...built, warnings: [...built.warnings, ...noChecker(project)] };
}

const triggerLines = ({ triggers }: Manifest, id: string): string[] =>
  triggers.map(t =>
    t.type === 'http'
      ? `trigger ${t.name}: ${t.methods.join(', ')} /api/triggers/http/${id}${t.path}`
      : `trigger ${t.name}: command /${t.name}`,
  );

const accessLine = ({ policy, public: open, reason, service_keys, users }: SuggestedAccess): string => {
  const callers = [
    ...(open ? ['everyone'] : []),
    ...(users ? ['users'] : []),
    ...(service_keys ? ['service keys'] : []),
  ];
  const when = policy === '' ? '' : ` when ${policy}`;
  return `  suggests ${callers.join(' and ')}${when}: ${reason}`;
};

/** What an administrator reads before an installation: what is asked for and why, and who should call. */
const reviewLines = (manifest: Manifest): string[] => [
  ...manifest.requirements.flatMap(({ config, description, kind, name, target }) => [
    `requires ${[kind, name, target].filter(part => part !== undefined).join(' ')}: ${description || 'no reason given'}`,
    ...config.map(
      f => `  field ${f.name}${f.required ? ', required' : ''}${f.sensitive ? ', secret' : ''}: ${f.description}`,
    ),
  ]),
  ...manifest.triggers.flatMap((t, k) => [
    ...triggerLines({ ...manifest, triggers: manifest.triggers.slice(k, k + 1) }, manifest.id),
    ...(t.type === 'http' && t.access !== undefined ? [accessLine(t.access)] : []),
  ]),
];

/** Where the frontend is written, next to the module. */
const zipOf = (file: string): string => `${file.replace(/\.wasm$/, '')}.zip`;

/** Mistakes, and that what lies where the module should be is none of these sources. */
function withLeft(mistakes: SourceMistakes, place: string): SourceMistakes {
  const left = place.endsWith('.wasm') ? [place] : fs.globSync(path.join(place, '*.wasm'));
  const lines = left.filter(file => fs.existsSync(file)).map(file => `${file} is still that of an earlier build`);
  return lines.length === 0 ? mistakes : new SourceMistakes([mistakes.message, ...lines].join('\n'));
}

/** `plugin build [FOLDER]`. @returns what to print */
export async function buildCommand(folder: string, flags: { out?: string; json?: boolean }): Promise<string> {
  const project = readProject(folder);
  const { findings, frontend, manifest, module, ms, permissions, warnings } = await buildChecked(project)
    .finally(endBuilds)
    .catch((error: unknown) => {
      throw error instanceof SourceMistakes ? withLeft(error, flags.out ?? path.join(folder, 'build')) : error;
    });
  const file = flags.out ?? path.join(folder, 'build', `${manifest.id}.wasm`);
  try {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, module);
    if (frontend !== null) fs.writeFileSync(zipOf(file), frontend);
  } catch (error) {
    throw new OperatorError(`${file} cannot be written: ${fileProblem(error)}`);
  }
  const withFrontend = frontend === null ? null : zipOf(file);
  const facts = { file, size: module.length, frontend: withFrontend, manifest, permissions, warnings, findings };
  if (flags.json === true) return jsonText(facts);
  return [
    `${file}: ${manifest.id} ${manifest.version}, ${kilobytes(module.length)}, built in ${Math.round(ms)} ms`,
    `permissions: ${permissions.join(', ') || 'none'}`,
    ...triggerLines(manifest, manifest.id),
    ...warnings.map(w => `warning: ${w}`),
    ...findings.map(findingLine),
    ...(withFrontend === null ? [] : [`${withFrontend}: its frontend, ${kilobytes(frontend?.length ?? 0)}`]),
    `upload it: plugin-host plugin upload ${file}${withFrontend === null ? '' : ` --frontend ${withFrontend}`}`,
  ].join('\n');
}

/** `plugin test [FOLDER]`. @returns with what the command ends */
export async function testCommand(folder: string, files: readonly string[], isServed = false): Promise<number> {
  if (isServed) {
    await (await import('../../authors/serve-tests.ts')).serveTests(process.stdin, process.stdout);
    return 0;
  }
  if (isTestFile(folder))
    throw new UsageError(`${folder} is a test: name the folder of the plugin before it, like plugin test . ${folder}`);
  const project = readProject(folder);
  writeKit(project.language, project.root);
  return await runTests(project, files, line => writeLine(process.stderr, line));
}

/** `plugin dev [FOLDER]`: runs until a signal stops it. */
export async function devCommand(folder: string, port: string | undefined): Promise<void> {
  const number = portOf(port);
  const { startDev } = await import('../../authors/dev.ts');
  const dev = await startDev(folder, number, say);
  untilSignal(() => dev.stop());
}

/** `plugin dev --remote`: uploads to a service until a signal stops it. */
export async function devRemoteCommand(folder: string, remote: Remote, flags: DevRemoteFlags): Promise<void> {
  const { startRemoteDev } = await import('../remote/dev-remote.ts');
  untilSignal(await startRemoteDev(folder, remote, flags, say));
}

const say = (text: string): void => writeLine(process.stdout, text);

function untilSignal(stopped: () => Promise<void>): void {
  const stop = (): void => void stopped().then(() => process.exit(0));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, stop);
}

/** `plugin inspect FILE`. @returns what to print; ends with 3 when an upload would be refused */
export function inspectCommand(file: string, flags: { json?: boolean }): Answer {
  let bytes: Uint8Array;
  try {
    bytes = fs.readFileSync(file);
  } catch (error) {
    throw new OperatorError(`${file} cannot be read: ${fileProblem(error)}`);
  }
  const { findings, manifest, signature } = inspectModule(bytes);
  const { keyId } = checkSignature(signature, []);
  const refused = findings.some(f => f.level === 'refusal');
  const imports = refused ? [] : importsOf(bytes);
  const permissions = manifest === null ? [] : permissionsOf(manifest);
  const facts = { file, size: bytes.length, refused, manifest, permissions, imports, findings, signed_by: keyId };
  const text = [
    `${file}: ${manifest === null ? 'no manifest that can be read' : `${manifest.id} ${manifest.version}, "${manifest.name}"`}, ${kilobytes(bytes.length)}`,
    ...(manifest === null ? [] : [`permissions: ${permissions.join(', ') || 'none'}`]),
    ...(manifest === null ? [] : reviewLines(manifest)),
    ...(imports.length === 0 ? [] : [`imports: ${imports.join(', ')}`]),
    ...(keyId === null ? [] : [`signature: claims the key ${keyId}; a service tells whether it is right`]),
    ...findings.map(findingLine),
    refused ? 'an upload would be refused' : 'an upload would be accepted',
  ];
  return { text: flags.json === true ? jsonText(facts) : text.join('\n'), exitCode: refused ? 3 : 0 };
}

/** Host functions a module imports. */
function importsOf(bytes: Uint8Array): string[] {
  const module = new WebAssembly.Module(new Uint8Array(bytes));
  return WebAssembly.Module.imports(module)
    .filter(i => i.module === 'plugin_host')
    .map(i => i.name);
}
