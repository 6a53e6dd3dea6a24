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
import { type Answer, ask, type Remote, type RemoteFlags } from '../remote/remote.ts';

/** `plugin replay`: runs a recorded execution again on this machine. */

export type ReplayFlags = RemoteFlags & { module?: string; save?: string; set: string[] };

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

async function recordingOf(
  execution: string,
  module: Uint8Array,
  remote: () => Promise<Remote>,
  save: string | undefined,
): Promise<RecordedExecution> {
  if (!/^\d+$/.test(execution)) return readRecording(Buffer.from(fileBytes(execution)).toString(), execution);
  const { manifest } = inspectModule(module);
  if (manifest === null) throw new OperatorError('the module has no manifest: an upload would be refused');
  const { host } = await remote();
  const params = { path: { id: manifest.id, execution: Number(execution) } };
  const answer = await ask(() => host.GET('/api/admin/plugins/{id}/executions/{execution}/recording', { params }));
  const text = jsonText(answer);
  if (save !== undefined) saveRecording(save, text);
  return readRecording(text, `execution ${execution}`);
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
 * @param remote the service that has it; asked for a number alone
 * @returns what to print; the command ends with 1 when it ran otherwise than then, and did not end well in place of a failure
 */
export async function replayCommand(
  execution: string,
  folder: string,
  flags: ReplayFlags,
  remote: () => Promise<Remote>,
): Promise<Answer> {
  const module = await moduleOf(folder, flags.module);
  const recorded = await recordingOf(execution, module, remote, flags.save);
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
    isRecorded === null ? '' : isRecorded ? ' (the recorded module)' : ' (another module than the recorded one)';
  const what = `${recorded.plugin_id} ${recorded.version}, trigger ${recorded.trigger}`;
  const lines = [
    `${what}${which}: ${outcome.kind}, ${calls} host calls answered from the recording, ${outcome.runMs.toFixed(1)} ms`,
    ...outcome.log.map(({ text }) => `  ${text.replaceAll('\n', '\n    ')}`),
    ...(outcome.failure === '' ? [] : [`  ${outcome.failure.replaceAll('\n', '\n    ')}`]),
    ...(outcome.kind === 'ok' && outcome.status !== 0
      ? [`  answers ${answerStatus(outcome)} ${bodyText(outcome)}`]
      : []),
    ...(differences.length === 0
      ? ['it runs as it did then']
      : ['it differs:', ...differences.map(line => `  ${line}`)]),
    ...(isMended ? ['it failed then, and ends well now'] : []),
    ...(isRecorded === true && differences.length > 0 ? [HIDDEN_MATTERS] : []),
  ];
  return { text: lines.join('\n'), exitCode };
}
