import { HOST_ERROR } from '../abi/host-functions.ts';
import { type HostResult, hostError } from '../abi/host-result.ts';
import type { Database } from '../db/database.ts';
import { LIMITS } from '../limits.ts';
import type { HostHandler } from './host-functions.ts';

/** Key-value store of a plugin (permission `kv`): per plugin, values up to 1 MiB, optional time to live. */

const GET = {
  name: 'kv_get',
  text: 'SELECT value FROM plugin_kv WHERE plugin_id = $1 AND key = $2 AND (expires_at IS NULL OR expires_at > now())',
};
const SET = {
  name: 'kv_set',
  text: `INSERT INTO plugin_kv (plugin_id, key, value, expires_at)
         VALUES ($1, $2, $3, CASE WHEN $4::int = 0 THEN NULL ELSE now() + make_interval(secs => $4::int) END)
         ON CONFLICT (plugin_id, key) DO UPDATE SET value = EXCLUDED.value, expires_at = EXCLUDED.expires_at`,
};
const DELETE = {
  name: 'kv_delete',
  text: 'DELETE FROM plugin_kv WHERE plugin_id = $1 AND key = $2 RETURNING expires_at IS NULL OR expires_at > now() AS live',
};
const LIST = {
  name: 'kv_list',
  text: `SELECT key FROM plugin_kv WHERE plugin_id = $1 AND key > $2 AND key >= $3 AND starts_with(key, $3)
         AND (expires_at IS NULL OR expires_at > now()) ORDER BY key LIMIT $4`,
};

/** Rows one statement removes, so that no lock is held for long. */
const SWEPT_AT_ONCE = 5000;

function badKey(key: string): HostResult | null {
  if (key === '') return hostError(HOST_ERROR.invalid, 'the key is empty');
  if (key.includes('\0')) return hostError(HOST_ERROR.invalid, 'the key holds a NUL character');
  const bytes = Buffer.byteLength(key);
  if (bytes > LIMITS.kvKeyBytesMax)
    return hostError(HOST_ERROR.tooLarge, `the key has ${bytes} bytes; at most ${LIMITS.kvKeyBytesMax} are allowed`);
  return null;
}

export function kvHandlers(db: Database): Record<'kv_get' | 'kv_set' | 'kv_delete' | 'kv_list', HostHandler> {
  return {
    async kv_get(call, args) {
      const key = args.text(0);
      const bad = badKey(key);
      if (bad !== null) return bad;
      const { rows } = await db.query<{ value: Buffer }>({ ...GET, values: [call.plugin.id, key] });
      const value = rows[0]?.value;
      return value === undefined ? hostError(HOST_ERROR.notFound) : { code: value.length, data: value };
    },
    async kv_set(call, args) {
      const key = args.text(0);
      const value = args.bytes(1);
      const ttl = args.int(2);
      const bad = badKey(key);
      if (bad !== null) return bad;
      if (value.length > LIMITS.kvValueBytesMax)
        return hostError(
          HOST_ERROR.tooLarge,
          `the value has ${value.length} bytes; at most ${LIMITS.kvValueBytesMax} are allowed`,
        );
      if (ttl < 0) return hostError(HOST_ERROR.invalid, 'the time to live is below zero');
      await db.query({ ...SET, values: [call.plugin.id, key, value, ttl] });
      return { code: 0 };
    },
    async kv_delete(call, args) {
      const key = args.text(0);
      const bad = badKey(key);
      if (bad !== null) return bad;
      const { rows } = await db.query<{ live: boolean }>({ ...DELETE, values: [call.plugin.id, key] });
      return { code: rows[0]?.live === true ? 1 : 0 };
    },
    async kv_list(call, args) {
      const prefix = args.text(0);
      const after = args.text(1);
      const limit = args.int(2);
      if (prefix.includes('\0') || after.includes('\0'))
        return hostError(HOST_ERROR.invalid, 'a key holds no NUL character');
      if (limit < 0) return hostError(HOST_ERROR.invalid, 'the limit is below zero');
      const n = limit === 0 ? LIMITS.kvListMax : Math.min(limit, LIMITS.kvListMax);
      const { rows } = await db.query<{ key: string }>({ ...LIST, values: [call.plugin.id, after, prefix, n + 1] });
      const keys = rows.slice(0, n).map(r => r.key);
      const data = JSON.stringify({ keys, next: rows.length > n ? keys.at(-1) : null });
      return { code: Buffer.byteLength(data), data };
    },
  };
}

/** Removes values whose time has come, some at a time; returns how many. They are invisible before that already. */
export async function sweepExpired(db: Database): Promise<number> {
  for (let removed = 0; ; ) {
    const { rowCount } = await db.query(
      `DELETE FROM plugin_kv WHERE ctid = ANY (ARRAY
         (SELECT ctid FROM plugin_kv WHERE expires_at <= now() LIMIT $1 FOR UPDATE SKIP LOCKED))`,
      [SWEPT_AT_ONCE],
    );
    removed += rowCount ?? 0;
    if ((rowCount ?? 0) < SWEPT_AT_ONCE) return removed;
  }
}
