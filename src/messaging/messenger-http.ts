import { parseBoundedJson } from '../base/bounded-json.ts';
import { messageOf } from '../base/errors.ts';
import { retryAfterMs } from '../base/retry-after.ts';

/** Answers of an API are small. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;

/** The way to messengers: requests that reach only addresses they may (docs/SECURITY.md "Outgoing connections"). */
export type MessengerHttp = {
  call(
    address: string,
    of: {
      method: 'GET' | 'POST';
      headers: Record<string, string>;
      body: Uint8Array | null;
      signal: AbortSignal;
      bytesMax: number;
    },
  ): Promise<{ status: number; header(name: string): string | null; bytes: Uint8Array<ArrayBuffer> }>;
  /** Reads what lies at an address the messenger has named. */
  download(address: string, bytesMax: number, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
};

/** An answer of a messenger's API, or the way there that failed. Addresses hold tokens: they stand in no text. */
export type ApiAnswer = { status: number; json: unknown; retryAfterMs: number | null };

const errorOf = (error: unknown, signal: AbortSignal): Error => {
  if (signal.aborted) return new Error('no answer in time');
  const code = error instanceof Error && 'code' in error ? String(error.code) : messageOf(error);
  return new Error(`no answer (${code})`);
};

/**
 * One request to the API of a messenger.
 *
 * @throws Error without the address when there is no answer
 */
export async function callApi(
  http: MessengerHttp,
  url: string,
  body: string | FormData | URLSearchParams | null,
  signal: AbortSignal,
  json = false,
): Promise<ApiAnswer> {
  // The platform writes forms; their type names the boundary it has chosen.
  const packed = new Response(body);
  const type = json ? 'application/json' : packed.headers.get('content-type');
  const bytes = body === null ? null : new Uint8Array(await packed.arrayBuffer());
  const answer = await http
    .call(url, {
      method: body === null ? 'GET' : 'POST',
      headers: type === null ? {} : { 'content-type': type },
      body: bytes,
      signal,
      bytesMax: ANSWER_BYTES_MAX,
    })
    .catch((error: unknown) => {
      throw errorOf(error, signal);
    });
  const told = { status: answer.status, retryAfterMs: retryAfterMs(answer.header('retry-after'), Date.now()) };
  try {
    return { ...told, json: parseBoundedJson(new TextDecoder().decode(answer.bytes)) };
  } catch {
    return { ...told, json: null };
  }
}

/** The bytes at an address of the messenger's API. @throws Error without the address */
export async function fetchBytes(
  http: MessengerHttp,
  url: string,
  bytesMax: number,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  const answer = await http
    .call(url, { method: 'GET', headers: {}, body: null, signal, bytesMax })
    .catch((error: unknown) => {
      throw new Error(`the file could not be fetched: ${errorOf(error, signal).message}`);
    });
  if (answer.status !== 200) throw new Error(`the file could not be fetched (status ${answer.status})`);
  return answer.bytes;
}
