import fs from 'node:fs';
import path from 'node:path';
import { DEV_PORT, MESSAGE_PATH, type MessageOrder, messageReply } from '../../authors/dev-front.ts';
import { OperatorError, UsageError } from '../../base/errors.ts';
import { fileProblem } from '../../base/file-problem.ts';
import { jsonText } from '../print/json-text.ts';
import type { Answer } from '../remote/remote.ts';

/** `plugin message`: a message of a messenger to the plugin that `plugin dev` runs. */

export type MessageFlags = {
  as?: string;
  file?: string;
  mimeType?: string;
  save?: string;
  port?: string;
  json?: boolean;
};

/** What becomes of a command that ended well: a plugin's, and those of the host. */
const WELL: readonly string[] = ['ran', 'start', 'help', 'link_asked', 'linked', 'unlinked'];

/** What the reply itself explains. */
const UNKNOWN: readonly string[] = ['unknown_command', 'no_command'];

/** @throws UsageError when it is no port */
export function portOf(text: string | undefined): number {
  const number = text === undefined ? DEV_PORT : Number(text);
  if (!Number.isInteger(number) || number < 0 || number > 65_535)
    throw new UsageError(`--port ${text} is no port: give a number from 0 (any that is free) to 65535`);
  return number;
}

function fileOf({ file, mimeType }: MessageFlags): MessageOrder['file'] {
  if (file === undefined) return null;
  try {
    const base64 = fs.readFileSync(file).toString('base64');
    return { name: path.basename(file), mime_type: mimeType ?? 'application/octet-stream', base64 };
  } catch (error) {
    throw new OperatorError(`${file} cannot be read: ${fileProblem(error)}`);
  }
}

const problem = (body: unknown): string =>
  typeof body === 'object' && body !== null && 'error' in body
    ? String(body.error)
    : 'what answers there is not plugin dev: name its port with --port';

/** Writes a file that came back, next to those that are there. @returns where */
function saveFile(folder: string, name: string, bytes: Uint8Array): string {
  const { ext, name: stem } = path.parse(path.basename(name));
  for (let k = 1; ; k++) {
    const target = path.join(folder, `${stem === '' ? 'file' : stem}${k === 1 ? '' : `-${k}`}${ext}`);
    try {
      fs.mkdirSync(folder, { recursive: true });
      fs.writeFileSync(target, bytes, { flag: 'wx' });
      return target;
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EEXIST') continue;
      throw new OperatorError(`${target} cannot be written: ${fileProblem(error)}`);
    }
  }
}

/** `plugin message TEXT`. @returns what came back; the command ends with 1 when the command did not run well */
export async function messageCommand(text: string, flags: MessageFlags): Promise<Answer> {
  const url = `http://127.0.0.1:${portOf(flags.port)}${MESSAGE_PATH}`;
  const order: MessageOrder = { as: flags.as ?? 'user:1', text, file: fileOf(flags) };
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(order),
  }).catch((error: unknown) => {
    throw new OperatorError(`nothing answers on ${url}: start plugin-host plugin dev, or name its port with --port`, {
      cause: error,
    });
  });
  const body: unknown = await answer.json().catch(() => null);
  if (!answer.ok) throw new OperatorError(problem(body));
  const read = messageReply.safeParse(body);
  if (!read.success) throw new OperatorError(`${url} is not plugin dev: name its port with --port`);
  const { messages, outcome } = read.data;
  const lines = messages.flatMap(({ file, text, to }) => [
    ...(text === '' ? [] : [`${to} gets: ${text}`]),
    ...(file === null ? [] : [`${to} gets the file ${file.name} (${file.mime_type}, ${file.size} bytes)`]),
  ]);
  if (flags.save !== undefined)
    for (const { file } of messages) {
      if (file === null) continue;
      lines.push(`saved ${saveFile(flags.save, file.name, Buffer.from(file.base64, 'base64'))}`);
    }
  if (messages.length === 0) lines.push('nothing came back');
  const isWell = WELL.includes(outcome);
  if (UNKNOWN.includes(outcome)) lines.push(`nothing ran: ${outcome}`);
  else if (!isWell) lines.push(`the command did not run well: ${outcome}; the terminal of plugin dev says why`);
  return { text: flags.json === true ? jsonText(read.data) : lines.join('\n'), exitCode: isWell ? 0 : 1 };
}
