import { z } from 'zod';
import { HOST_ERROR } from '../abi/host-functions.ts';
import { parseBoundedJson } from '../base/bounded-json.ts';
import { fieldErrorsOf } from '../base/field-errors.ts';
import { LIMITS } from '../base/limits.ts';
import { studentFilter } from '../messaging/students.ts';
import { Refusal } from './refusal.ts';

/** What plugins give the functions that send messages, and what of it is refused (docs/abi.md "Messages"). */

const plainText = (max: number) =>
  z
    .string()
    .max(max)
    .refine(
      text => text.isWellFormed() && !text.includes('\0'),
      'must not hold a NUL character or half of a surrogate pair',
    )
    .default('');

const message = z
  .strictObject({
    text: plainText(LIMITS.messageCharsMax),
    files: z
      .array(
        z.strictObject({
          file: z.looseObject({ id: z.string().max(100) }),
          caption: plainText(LIMITS.messageCharsMax),
        }),
      )
      .max(LIMITS.messageFilesMax)
      .default([]),
  })
  .refine(m => m.text.trim() !== '' || m.files.length > 0, 'must have a text or a file');

function parseJson<T>(json: string, what: string, shape: z.ZodType<T>): T {
  let value: unknown;
  try {
    value = parseBoundedJson(json);
  } catch {
    throw new Refusal(HOST_ERROR.invalid, `the ${what} is not JSON`);
  }
  const parsed = shape.safeParse(value);
  if (parsed.success) return parsed.data;
  const [first] = fieldErrorsOf(parsed.error);
  const where = first === undefined || first.pointer === '' ? '' : `${first.pointer} `;
  throw new Refusal(HOST_ERROR.invalid, `the ${what}: ${where}${first?.message ?? 'is not valid'}`);
}

const MESSAGE_SHAPE = 'message, like {"text": "...", "files": [{"file": {"id": "..."}, "caption": "..."}]}';

/** A message as it was given, with the ids of its files. @throws Refusal */
export function parseMessage(json: string): { text: string; files: Array<{ id: string; caption: string }> } {
  if (json.length > LIMITS.hostCallTextBytesMax)
    throw new Refusal(HOST_ERROR.tooLarge, `the message has more than ${LIMITS.hostCallTextBytesMax} characters`);
  const { files, text } = parseJson(json, MESSAGE_SHAPE, message);
  return { text, files: files.map(f => ({ id: f.file.id, caption: f.caption })) };
}

/** Which students a message is for. @throws Refusal */
export const parseStudentFilter = (json: string): z.output<typeof studentFilter> =>
  parseJson(json, 'filter, like {"groups": ["..."], "funding_type": "budget"}', studentFilter);

/** @param replies how many there are already @throws Refusal when the execution may not reply (any more) */
export function assertMayReply(kind: string, replies: number): void {
  if (kind !== 'messenger') throw new Refusal(HOST_ERROR.invalid, 'reply is for messenger triggers');
  if (replies >= LIMITS.repliesMax)
    throw new Refusal(HOST_ERROR.tooLarge, `one execution may reply ${LIMITS.repliesMax} times (repliesMax)`);
}

/** @throws Refusal for what is no id of a user */
export function assertUserId(id: number | bigint): void {
  if (id <= 0) throw new Refusal(HOST_ERROR.invalid, 'the user id must be above zero');
}

/** @throws Refusal for a file that no message carries */
export function assertFits(id: string, size: number): void {
  if (size > LIMITS.messageFileBytesMax)
    throw new Refusal(
      HOST_ERROR.tooLarge,
      `the file ${id} has ${size} bytes; a message may carry ${LIMITS.messageFileBytesMax} (messageFileBytesMax)`,
    );
}
