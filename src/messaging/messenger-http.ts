import { Readable } from 'node:stream';
import { messageOf } from '../errors.ts';
import { readBounded } from '../read-bounded.ts';

/** What an API answers is small. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;

/** An answer of a messenger's API, or the way there that failed. Addresses hold tokens: they stand in no text. */
export type ApiAnswer = { status: number; json: unknown; retryAfterMs: number | null };

const bytesOf = (response: Response, bytesMax: number): Promise<Uint8Array<ArrayBuffer>> =>
  readBounded(
    response.body ?? Readable.from([]),
    bytesMax,
    () => new Error(`the answer is larger than ${bytesMax} bytes`),
  );

/**
 * One request to the API of a messenger.
 *
 * @throws Error without the address when there is no answer, or none that is JSON
 */
export async function callApi(
  url: string,
  body: string | FormData | URLSearchParams | null,
  signal: AbortSignal,
  json = false,
): Promise<ApiAnswer> {
  let response: Response;
  try {
    response = await fetch(url, {
      method: body === null ? 'GET' : 'POST',
      body,
      signal,
      redirect: 'error',
      ...(json ? { headers: { 'content-type': 'application/json' } } : {}),
    });
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : messageOf(cause);
    throw new Error(signal.aborted ? 'no answer in time' : `no answer (${code})`);
  }
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : null;
  const bytes = await bytesOf(response, ANSWER_BYTES_MAX);
  try {
    return { status: response.status, json: JSON.parse(new TextDecoder().decode(bytes)), retryAfterMs };
  } catch {
    return { status: response.status, json: null, retryAfterMs };
  }
}

/** The bytes at an address of the messenger's API. @throws Error without the address */
export async function fetchBytes(url: string, bytesMax: number, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetch(url, { signal, redirect: 'error' }).catch(() => {
    throw new Error('the file could not be fetched');
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the file could not be fetched (status ${response.status})`);
  }
  return await bytesOf(response, bytesMax);
}
