import { createHmac } from 'node:crypto';
import { ServiceError, STATUS_OF } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import { userText } from '../../base/principal.ts';
import type { Database } from '../../db/database.ts';
import type { Reply, Request } from '../../http/message.ts';
import {
  beginRequest,
  type EarlierRequest,
  forgetRequest,
  type KeptAnswer,
  type KeyedRequest,
  keepAnswer,
} from '../../records/idempotent-requests.ts';
import type { Caller } from './caller.ts';
import type { Idempotency } from './contract.ts';

/**
 * Requests that may be repeated (docs/api.md "Repeating a request"). A client that did not get the answer of a request that makes
 * something sends it again with the same `Idempotency-Key`, and gets the answer of the first time.
 * https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/
 */

const KEY = /^[\x21-\x7e]{1,255}$/;
/** A request that has not been answered for so long may never be. */
const ABANDONED_MS = 60_000;

/** A key belongs to its caller: another one's request with the same key is another request. */
function callerText(caller: Caller): string {
  switch (caller.kind) {
    case 'admin':
      return `admin:${caller.account.userId}`;
    case 'admin_key':
      return `admin_key:${caller.key.id}`;
    case 'user':
      return userText(caller.session.userId);
    case 'setup':
    case 'api_key':
      return caller.kind;
    case 'anyone':
      throw new Error('bug: a request without a caller has no Idempotency-Key');
  }
}

function keyedRequest(secretKey: Uint8Array, { body, caller, key, request }: RepeatableRequest): KeyedRequest {
  const { method, path, query } = request;
  if (!KEY.test(key))
    throw new ServiceError('malformed_request', 'Idempotency-Key must be 1 to 255 visible ASCII characters');
  // Under the service's own key, because a body may hold a password that could be guessed from a plain hash.
  const text = JSON.stringify(['idempotency', method, path, query, body ?? null]);
  return { caller: callerText(caller), key, sha256: createHmac('sha256', secretKey).update(text).digest() };
}

/** A request with its Idempotency-Key. `body` is the value of its JSON body. */
export type RepeatableRequest = { key: string; request: Request; caller: Caller; body: unknown };

/** Where answers are kept. `report` is called when an answer could not be kept. */
export type KeptAnswers = { db: Database; secretKey: Uint8Array; report(error: unknown): void };

/** Whether an error says that nothing was done. After any other one the work may have been committed. */
const didNothing = (error: unknown): boolean => error instanceof ServiceError && STATUS_OF[error.code] < 500;

/**
 * Runs a request once for its key.
 *
 * @param run does what is asked
 * @returns its answer, or the one of the first time with `Idempotent-Replayed: true`
 * @throws ServiceError `too_many_attempts` when too many requests of the caller are kept; `idempotency_key_reused` when the key came with another request; `conflict` when the first one is under way, when it
 *   is not known what became of it, and when its answer held a secret; what `run` throws. The key is free again when that refusal says that nothing was done
 */
export async function runOnce(
  { db, report, secretKey }: KeptAnswers,
  kind: Idempotency,
  request: RepeatableRequest,
  run: () => Promise<Reply>,
): Promise<Reply> {
  const keyed = keyedRequest(secretKey, request);
  const earlier = await beginRequest(db, keyed);
  if (earlier === 'full')
    throw new ServiceError(
      'too_many_attempts',
      `${LIMITS.idempotencyKeysPerCallerMax} requests of this caller with an Idempotency-Key are kept, each for 24 hours; send this one without a key, or later`,
      { headers: [['Retry-After', '3600']] },
    );
  if (earlier !== null) return repeated(earlier);
  let reply: Reply;
  try {
    reply = await run();
  } catch (error) {
    if (didNothing(error)) await forgetRequest(db, keyed).catch(report);
    throw error;
  }
  // The work is done: its answer goes out, also when it cannot be kept.
  await keepAnswer(db, keyed, keptAnswer(kind, reply)).catch(report);
  return reply;
}

function keptAnswer(kind: Idempotency, { body, headers, status }: Reply): KeptAnswer {
  const text = typeof body === 'string' ? body : '';
  const value: unknown = text === '' ? null : JSON.parse(text);
  const madeId = typeof value === 'object' && value !== null && 'id' in value ? String(value.id) : null;
  return { status, headers, body: kind === 'secret' ? null : text, madeId };
}

/** The id as it stood in the answer: a number, where it is one. */
const idOf = (text: string | null): number | string | null =>
  text !== null && /^\d{1,15}$/.test(text) ? Number(text) : text;

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
      'the first request with this Idempotency-Key was not answered: it may still run, it failed, or its host ended; look whether it was done, and repeat it with another key if not',
    );
  }
  if (answer.body === null)
    throw new ServiceError(
      'conflict',
      `the first request with this Idempotency-Key was done and made ${answer.madeId}; its answer held a secret, which is shown once`,
      { extra: { id: idOf(answer.madeId) } },
    );
  return {
    status: answer.status,
    headers: [...answer.headers, ['Idempotent-Replayed', 'true']],
    body: answer.body,
  };
}
