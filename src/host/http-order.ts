import { z } from 'zod';
import { HOST_ERROR } from '../abi/host-functions.ts';
import { parseBoundedJson } from '../base/bounded-json.ts';
import { fieldErrorsOf } from '../base/field-errors.ts';
import { LIMITS } from '../base/limits.ts';
import { Refusal } from './refusal.ts';

/** What a plugin gives to `http_request` (docs/abi.md). */

const order = z.strictObject({
  method: z
    .string()
    .regex(/^[A-Za-z]{1,20}$/, 'must be a method like GET')
    .transform(m => m.toUpperCase())
    .default('GET'),
  url: z.string().max(8192),
  headers: z.record(z.string(), z.string()).default({}),
  timeout_ms: z.int().min(1).max(LIMITS.executionMsMax).optional(),
});

/** Headers the library sets itself, and headers that would change where the message ends or which server it is for. */
const FORBIDDEN = new Set([
  'host',
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
const METHODS_REFUSED = new Set(['CONNECT', 'TRACE', 'TRACK']);

/** A request of a plugin to another host. */
export type Order = { method: string; url: URL; headers: Record<string, string>; timeoutMs: number };

/** @throws Refusal that names the member that is wrong */
export function parseOrder(json: string): Order {
  if (json.length > LIMITS.hostCallTextBytesMax)
    throw new Refusal(
      HOST_ERROR.tooLarge,
      `the request has more than ${LIMITS.hostCallTextBytesMax} characters without its body`,
    );
  let value: unknown;
  try {
    value = parseBoundedJson(json);
  } catch {
    throw new Refusal(
      HOST_ERROR.invalid,
      'the request is not JSON; it must be {"method", "url", "headers", "timeout_ms"}',
    );
  }
  const parsed = order.safeParse(value);
  if (!parsed.success) {
    const [first] = fieldErrorsOf(parsed.error);
    throw new Refusal(HOST_ERROR.invalid, `${first?.pointer || 'the request'} ${first?.message ?? 'is not valid'}`);
  }
  const { method, timeout_ms, url } = parsed.data;
  if (METHODS_REFUSED.has(method)) throw new Refusal(HOST_ERROR.invalid, `/method ${method} is not allowed`);
  const headers: Record<string, string> = {};
  for (const [name, text] of Object.entries(parsed.data.headers)) {
    const lower = name.toLowerCase();
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(lower))
      throw new Refusal(HOST_ERROR.invalid, `/headers has ${JSON.stringify(name)}, which is not a valid header name`);
    if (FORBIDDEN.has(lower)) throw new Refusal(HOST_ERROR.invalid, `/headers/${lower} is set by the host itself`);
    if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(text))
      throw new Refusal(HOST_ERROR.invalid, `/headers/${lower} contains a character that is not allowed in a header`);
    headers[lower] = text;
  }
  return { method, url: addressOf(url), headers, timeoutMs: timeout_ms ?? LIMITS.executionMsMax };
}

/** @throws Refusal for a body where the method has none */
export function assertNoBody({ method }: Order, body: Uint8Array): void {
  if (body.length > 0 && (method === 'GET' || method === 'HEAD'))
    throw new Refusal(HOST_ERROR.invalid, `a ${method} request has no body`);
}

/** Parses a URL. @param from the URL that redirected to this one */
export function addressOf(text: string, from?: URL): URL {
  const what = from === undefined ? '/url' : `the redirect target of ${from.host}`;
  const base = from?.href;
  if (!URL.canParse(text, base))
    throw new Refusal(HOST_ERROR.invalid, `${what} is not a URL like https://api.example.org/path`);
  const url = new URL(text, base);
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new Refusal(HOST_ERROR.invalid, `${what} begins with ${url.protocol}; http: and https: are allowed`);
  if (url.username !== '' || url.password !== '')
    throw new Refusal(HOST_ERROR.invalid, `${what} contains a user name or password; send them in a header`);
  url.hash = '';
  return url;
}
