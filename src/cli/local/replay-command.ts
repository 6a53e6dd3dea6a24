import fs from 'node:fs';
import type { ExecutionOutcome } from '../../abi/execution-outcome.ts';
import { writeKit } from '../../authors/new-project.ts';
import { answerStatus, readRecording, replay } from '../../authors/replay.ts';
import { OperatorError, UsageError } from '../../base/errors.ts';
import { fileProblem } from '../../base/file-problem.ts';
import { inspectModule } from '../../plugins/inspect.ts';
import { buildProject, endBuilds } from '../../projects/build-project.ts';
import { readProject } from '../../projects/project.ts';
import type { RecordedExecution } from '../../records/recorded-execution.ts';
import { jsonText } from '../print/json-text.ts';
import { allOf } from '../remote/find-named.ts';
import { type Answer, ask, type Remote, type RemoteFlags } from '../remote/remote.ts';

/** `plugin replay`: runs a recorded execution again on this machine. */

export type ReplayFlags = RemoteFlags & { module?: string; plugin?: string; save?: string; set: string[] };

function fileBytes(file: string): Uint8Array {
  try {
    return fs.readFileSync(file);
  } catch (error) {
    throw new OperatorError(`${file} cannot be read: ${fileProblem(error)}`);
  }
}

/** The module that is named, or the one of the folder as its sources are now. */
async function moduleOf(folder: string, file: string | undefined): Promise<Uint8Array> {
  if (file !== undefined) return fileBytes(file);
  const project = readProject(folder);
  writeKit(project.language, project.root);
  return (await buildProject(project).finally(endBuilds)).module;
}

function configOf(fields: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    fields.map(field => {
      const [, name, value] = /^([^=]+)=(.*)$/s.exec(field) ?? [];
      if (name === undefined || value === undefined)
        throw new UsageError(`--set "${field}" is no field: write it like api_key=secret`);
      return [name, value];
    }),
  );
}

function saveRecording(file: string, text: string): void {
  try {
    fs.writeFileSync(file, `${text}\n`, { mode: 0o600 });
    // One that was there keeps its mode.
    fs.chmodSync(file, 0o600);
  } catch (error) {
    throw new OperatorError(`${file} cannot be written: ${fileProblem(error)}`);
  }
}

/**
 * @param execution its number, or a file with its recording
 * @param plugin asked for where the service is
 */
async function recordingOf(
  execution: string,
  plugin: () => string,
  remote: () => Promise<Remote>,
  save: string | undefined,
): Promise<RecordedExecution> {
  if (!/^\d+$/.test(execution)) {
    if (!fs.existsSync(execution))
      throw new OperatorError(
        `there is no file ${execution}: give the number of an execution, or a file with a recording`,
      );
    if (save !== undefined) throw new UsageError(`--save writes what a service has; ${execution} is a file already`);
    return readRecording(Buffer.from(fileBytes(execution)).toString(), execution);
  }
  const id = plugin();
  const { host } = await remote();
  const params = { path: { id, execution: Number(execution) } };
  const answer = await ask(() => host.GET('/api/admin/plugins/{id}/executions/{execution}/recording', { params }));
  const text = jsonText(answer);
  if (save !== undefined) saveRecording(save, text);
  return readRecording(text, `execution ${execution}`);
}

function pluginOf(module: Uint8Array): string {
  const { manifest } = inspectModule(module);
  if (manifest === null) throw new OperatorError('the module has no manifest: an upload would be refused');
  return manifest.id;
}

/** The module that ran then, as the service has it. */
async function recordedModule({ host }: Remote, then: RecordedExecution): Promise<Uint8Array> {
  const { module_sha256: sha256, plugin_id: id } = then;
  const versions = await allOf(query =>
    host.GET('/api/admin/plugins/{id}/versions', { params: { path: { id }, query } }),
  );
  const version = versions.find(v => v.sha256 === sha256);
  if (version === undefined)
    throw new OperatorError(`${id} has no version with the recorded module any more: replay it on the sources instead`);
  const params = { path: { id, key: version.wasm_key } };
  return new Uint8Array(
    await ask(() => host.GET('/api/admin/plugins/{id}/versions/{key}/module', { params, parseAs: 'arrayBuffer' })),
  );
}

/** What ran, and what it is run on now. */
async function replayedOf(
  execution: string,
  folder: string | undefined,
  { module: file, plugin, save }: ReplayFlags,
  remote: () => Promise<Remote>,
): Promise<{ module: Uint8Array; recorded: RecordedExecution }> {
  if (plugin === undefined) {
    const module = await moduleOf(folder ?? '.', file);
    return { module, recorded: await recordingOf(execution, () => pluginOf(module), remote, save) };
  }
  if (folder !== undefined || file !== undefined)
    throw new UsageError('--plugin runs the recorded module of the service: leave out the folder and --module');
  const recorded = await recordingOf(execution, () => plugin, remote, save);
  if (recorded.plugin_id !== plugin)
    throw new OperatorError(`${execution} is an execution of ${recorded.plugin_id}, not of ${plugin}`);
  return { recorded, module: await recordedModule(await remote(), recorded) };
}

const HIDDEN_MATTERS =
  'it is the recorded module: what it does otherwise depends on values that the recording hides (--set NAME=VALUE gives those of the configuration)';
const SHOWN_CHARACTERS = 500;

/** What it answers, for the eyes. */
function bodyText({ body }: ExecutionOutcome): string {
  const text = Buffer.from(body).toString();
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}...` : text;
}

/**
 * `plugin replay EXECUTION [FOLDER]`.
 *
 * @param execution number of a recorded execution, or a file with a recording
 * @param folder of the plugin, which is built; undefined for the present one
 * @param remote the service that has it; asked for a number, and for the recorded module
 * @returns what to print; the command ends with 1 when it ran otherwise than then, and did not end well in place of a failure
 */
export async function replayCommand(
  execution: string,
  folder: string | undefined,
  flags: ReplayFlags,
  remote: () => Promise<Remote>,
): Promise<Answer> {
  const { module, recorded } = await replayedOf(execution, folder, flags, remote);
  const { calls, differences, isMended, isRecorded, outcome } = await replay(module, recorded, configOf(flags.set));
  const exitCode = differences.length > 0 && !isMended ? 1 : 0;
  if (flags.json === true)
    return {
      text: jsonText({
        same: differences.length === 0,
        mended: isMended,
        calls,
        differences,
        outcome: outcome.kind,
        failure: outcome.failure,
        ...(outcome.kind === 'ok' ? { status: answerStatus(outcome), body: bodyText(outcome) } : {}),
      }),
      exitCode,
    };
  const which =
    isRecorded === null
      ? ''
      : isRecorded
        ? ' (the recorded module)'
        : ` (another module than the recorded ${recorded.version})`;
  // The version of another module is not known to be that of the recording.
  const version = isRecorded === false ? '' : ` ${recorded.version}`;
  const what = `${recorded.plugin_id}${version}, trigger ${recorded.trigger}`;
  const lines = [
    `${what}${which}: ${outcome.kind}, ${calls} host call${calls === 1 ? '' : 's'} answered from the recording, ${outcome.runMs.toFixed(1)} ms`,
    ...outcome.log.map(({ text }) => `  ${text.replaceAll('\n', '\n    ')}`),
    ...(outcome.failure === '' ? [] : [`  ${outcome.failure.replaceAll('\n', '\n    ')}`]),
    ...(outcome.kind === 'ok' && outcome.status !== 0
      ? [`  answers ${answerStatus(outcome)} ${bodyText(outcome)}`]
      : []),
    ...(differences.length === 0
      ? ['it runs as it did then']
      : ['it differs:', ...differences.map(line => `  ${line}`)]),
    ...(flags.save === undefined ? [] : [`the recording is in ${flags.save}`]),
    ...(isMended ? ['it failed then, and ends well now'] : []),
    ...(isRecorded === true && differences.length > 0 ? [HIDDEN_MATTERS] : []),
  ];
  return { text: lines.join('\n'), exitCode };
}
