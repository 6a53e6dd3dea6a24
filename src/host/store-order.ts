import { z } from 'zod';
import { HOST_ERROR } from '../abi/host-functions.ts';
import { ServiceError } from '../base/errors.ts';
import { fieldErrorsOf } from '../base/field-errors.ts';
import { LIMITS } from '../base/limits.ts';
import { FILE_TYPES, type FileDescription, parseDescription } from '../files/file-kind.ts';
import { Refusal } from './refusal.ts';

const order = z.strictObject({
  name: z.string(),
  mime_type: z.string(),
  file_type: z.string(),
  ttl_ms: z.number().int().min(1).max(LIMITS.fileTtlMsMax).optional(),
});

const EXAMPLE = `{"name": "a.txt", "mime_type": "text/plain", "file_type": "${FILE_TYPES[1]}", "ttl_ms": 60000}`;

/** The first mistake in a description, with the member it is in. */
function firstMistake(error: z.ZodError): string {
  const [first] = fieldErrorsOf(error);
  return first === undefined ? 'it is not' : `${first.pointer || '/'} ${first.message}`;
}

/**
 * What a plugin gives to `file_store` (docs/abi.md).
 *
 * @returns the file, and how long it is kept; null without an end
 * @throws Refusal that names what is wrong
 */
export function parseStoreOrder(json: string): { description: FileDescription; ttlMs: number | null } {
  const parsed = order.safeParse(jsonOrNone(json));
  if (!parsed.success)
    throw new Refusal(
      HOST_ERROR.invalid,
      `the description must be JSON like ${EXAMPLE}: ${firstMistake(parsed.error)}`,
    );
  const { ttl_ms: ttlMs = null, ...said } = parsed.data;
  try {
    return { description: parseDescription(said), ttlMs };
  } catch (error) {
    if (error instanceof ServiceError) throw new Refusal(HOST_ERROR.invalid, error.message);
    throw error;
  }
}

function jsonOrNone(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
