import { LIMITS } from '../base/limits.ts';
import { userText } from '../base/principal.ts';
import type { Queryable } from '../db/database.ts';
import { findRow } from '../db/rows.ts';

/** Rows of `idempotent_requests`: what requests with an Idempotency-Key were answered (docs/api.md "Repeating a request"). */

/** A request, by its caller and the key the caller gave it. */
export type KeyedRequest = { caller: string; key: string; sha256: Buffer };

/** An answer that is kept. `body` is null where it held a secret. */
export type KeptAnswer = {
  status: number;
  headers: Array<[string, string]>;
  body: string | null;
  /** The id of what was made; null when the answer names none. */
  madeId: string | null;
};

export type EarlierRequest = {
  /** Whether it was the same request. */
  isSame: boolean;
  ageMs: number;
  /** Null: it has not been answered. */
  answer: KeptAnswer | null;
};

/**
 * Notes that a request begins.
 *
 * @returns null when it may; the one that came with this key before; or `full` when as many requests of the caller are kept as may be.
 *   Nothing is noted then
 */
export async function beginRequest(
  db: Queryable,
  { caller, key, sha256 }: KeyedRequest,
): Promise<EarlierRequest | 'full' | null> {
  const { rowCount } = await db.query(
    `INSERT INTO idempotent_requests (caller, key, request_sha256)
       SELECT $1, $2, $3
       WHERE NOT EXISTS (SELECT FROM idempotent_requests WHERE caller = $1 OFFSET $5 - 1)
         OR EXISTS (SELECT FROM idempotent_requests WHERE caller = $1 AND key = $2)
     ON CONFLICT (caller, key) DO UPDATE SET request_sha256 = $3, begun_at = now(), status = NULL, headers = NULL, body = NULL, made_id = NULL
       WHERE idempotent_requests.begun_at < now() - make_interval(secs => $4)`,
    [caller, key, sha256, LIMITS.idempotencyMs / 1000, LIMITS.idempotencyKeysPerCallerMax],
  );
  if (rowCount === 1) return null;
  const row = await findRow<
    { requestSha256: Buffer; ageMs: number; headers: KeptAnswer['headers'] | null; status: number | null } & Pick<
      KeptAnswer,
      'body' | 'madeId'
    >
  >(
    db,
    `SELECT request_sha256, (extract(epoch FROM now() - begun_at) * 1000)::float8 AS age_ms, status, headers, body, made_id
     FROM idempotent_requests WHERE caller = $1 AND key = $2`,
    [caller, key],
  );
  if (row === undefined) {
    const { rows: over } = await db.query('SELECT FROM idempotent_requests WHERE caller = $1 OFFSET $2 - 1 LIMIT 1', [
      caller,
      LIMITS.idempotencyKeysPerCallerMax,
    ]);
    // Otherwise it was refused a moment ago, and is free again.
    return over.length > 0 ? 'full' : await beginRequest(db, { caller, key, sha256 });
  }
  const { ageMs, body, headers, madeId, requestSha256, status } = row;
  return {
    isSame: requestSha256.equals(sha256),
    ageMs,
    answer: status === null ? null : { status, headers: headers ?? [], body, madeId },
  };
}

/** Keeps the answer of a request that began. */
export async function keepAnswer(db: Queryable, { caller, key }: KeyedRequest, answer: KeptAnswer): Promise<void> {
  await db.query(
    'UPDATE idempotent_requests SET status = $3, headers = $4, body = $5, made_id = $6 WHERE caller = $1 AND key = $2',
    [caller, key, answer.status, JSON.stringify(answer.headers), answer.body, answer.madeId],
  );
}

/** Forgets a request whose refusal says that nothing was done: it may be sent again. */
export async function forgetRequest(db: Queryable, { caller, key }: KeyedRequest): Promise<void> {
  await db.query('DELETE FROM idempotent_requests WHERE caller = $1 AND key = $2 AND status IS NULL', [caller, key]);
}

/** Removes what is older than a day. */
export async function removeOldRequests(db: Queryable): Promise<void> {
  await db.query('DELETE FROM idempotent_requests WHERE begun_at < now() - make_interval(secs => $1)', [
    LIMITS.idempotencyMs / 1000,
  ]);
}

/** Forgets what a user sent with keys. */
export async function listRequestsOf(db: Queryable, userId: number): Promise<object[]> {
  const { rows } = await db.query<object>(
    'SELECT key, status, body, made_id, begun_at FROM idempotent_requests WHERE caller = $1',
    [userText(userId)],
  );
  return rows;
}

export async function eraseRequestsOf(client: Queryable, userId: number): Promise<void> {
  await client.query('DELETE FROM idempotent_requests WHERE caller = $1', [userText(userId)]);
}
