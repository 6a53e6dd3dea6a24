import { createHash } from 'node:crypto';
import { ServiceError } from '../base/errors.ts';
import type { Database } from '../db/database.ts';
import type { Reply, Request } from '../http/message.ts';
import {
  beginRequest,
  type EarlierRequest,
  forgetRequest,
  type KeptAnswer,
  type KeyedRequest,
  keepAnswer,
} from '../records/idempotent-requests.ts';
import type { Caller } from './route.ts';

/**
 * Requests that may be repeated (docs/api.md "Repeating a request"). A client that did not get the answer of a request that makes
 * something sends it again with the same `Idempotency-Key`, and gets the answer of the first time.
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/
 */

/** What a repeated request is answered: the answer itself, or, where it held a secret, a refusal that names what was made. */
export type Idempotency = 'answer' | 'secret';

const KEY = /^[\x21-\x7e]{1,255}$/;
/** A request that has not been answered for so long was cut off when its host ended. */
const ABANDONED_MS = 60_000;

/** A key belongs to its caller: another one's request with the same key is another request. */
function callerText(caller: Caller): string {
  switch (caller.kind) {
    case 'admin':
      return `admin:${caller.account.userId}`;
    case 'admin_key':
      return `admin_key:${caller.key.id}`;
    case 'user':
      return `user:${caller.session.userId}`;
    case 'setup':
    case 'api_key':
      return caller.kind;
    case 'anyone':
      throw new Error('bug: a request without a caller has no Idempotency-Key');
  }
}

function keyedRequest(key: string, { method, path, query }: Request, caller: Caller, body: unknown): KeyedRequest {
  if (!KEY.test(key))
    throw new ServiceError('malformed_request', 'Idempotency-Key must be 1 to 255 visible ASCII characters');
  const text = JSON.stringify([method, path, query, body ?? null]);
  return { caller: callerText(caller), key, sha256: createHash('sha256').update(text).digest() };
}

/**
 * Runs a request once for its key.
 *
 * @param body the value of its JSON body
 * @param run does what is asked
 * @returns its answer, or the one of the first time with `Idempotent-Replayed: true`
 * @throws ServiceError `idempotency_key_reused` when the key came with another request; `conflict` when the first one is under way, when it
 *   is not known what became of it, and when its answer held a secret; what `run` throws, and then the key is free again
 */
export async function runOnce(
  db: Database,
  kind: Idempotency,
  { body, caller, key, request }: { key: string; request: Request; caller: Caller; body: unknown },
  run: () => Promise<Reply>,
): Promise<Reply> {
  const keyed = keyedRequest(key, request, caller, body);
  const earlier = await beginRequest(db, keyed);
  if (earlier !== null) return repeated(earlier);
  let reply: Reply;
  try {
    reply = await run();
  } catch (error) {
    await forgetRequest(db, keyed);
    throw error;
  }
  await keepAnswer(db, keyed, keptAnswer(kind, reply));
  return reply;
}

function keptAnswer(kind: Idempotency, { body, headers, status }: Reply): KeptAnswer {
  const text = typeof body === 'string' ? body : '';
  const value: unknown = text === '' ? null : JSON.parse(text);
  const madeId = typeof value === 'object' && value !== null && 'id' in value ? String(value.id) : null;
  return { status, headers, body: kind === 'secret' ? null : text, madeId };
}

function repeated({ ageMs, answer, isSame }: EarlierRequest): Reply {
  if (!isSame)
    throw new ServiceError(
      'idempotency_key_reused',
      'this Idempotency-Key came with another request; give each request a key of its own',
    );
  if (answer === null) {
    if (ageMs < ABANDONED_MS)
      throw new ServiceError('conflict', 'the first request with this Idempotency-Key is under way; try again later', {
        headers: [['Retry-After', '1']],
      });
    throw new ServiceError(
      'conflict',
      'the host ended during the first request with this Idempotency-Key: look whether it was done, and repeat it with another key if not',
    );
  }
  if (answer.body === null)
    throw new ServiceError(
      'conflict',
      `the first request with this Idempotency-Key was done and made ${answer.madeId}; its answer held a secret, which is shown once`,
      { extra: { id: answer.madeId } },
    );
  return {
    status: answer.status,
    headers: [...answer.headers, ['Idempotent-Replayed', 'true']],
    body: answer.body,
  };
}
