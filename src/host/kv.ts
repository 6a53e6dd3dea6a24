import { HOST_ERROR } from '../abi/host-functions.ts';
import { type HostResult, hostError } from '../abi/host-result.ts';
import { CallTooLate } from '../base/gatherer.ts';
import { LIMITS } from '../base/limits.ts';
import { type Database, isUnavailable } from '../db/database.ts';
import type { HostHandler } from './host-functions.ts';
import { badKey, badTtl, badValue, isInt64, MODE, parseKeys, tooLargeTogether } from './kv-arguments.ts';
import { makeKvReads } from './kv-reads.ts';
import { makeKvWrites } from './kv-writes.ts';

/** Key-value store of a plugin (permission `kv`): per plugin, values up to 1 MiB, optional time to live. */

const LIST = {
  name: 'kv_list',
  text: `SELECT key FROM plugin_kv WHERE plugin_id = $1 AND key > $2 AND key >= $3 AND starts_with(key, $3)
         AND (expires_at IS NULL OR expires_at > now()) ORDER BY key LIMIT $4`,
};
/** Sums the sizes of the values before any value is read, so that the database sends no more than the bound. */
const GET_MANY = {
  name: 'kv_get_many',
  text: `WITH found AS (SELECT key, value, sum(octet_length(value)) OVER () AS bytes FROM plugin_kv
           WHERE plugin_id = $1 AND key = ANY ($2::text[]) AND (expires_at IS NULL OR expires_at > now()))
         SELECT key, CASE WHEN bytes <= $3::bigint THEN value END AS value, bytes FROM found`,
};
const UPDATE = {
  name: 'kv_update',
  text: 'SELECT written, present FROM plugin_kv_update($1, $2, $3::bytea, $4::bytea, $5::int)',
};
const INCREMENT = {
  name: 'kv_increment',
  text: 'SELECT total, present FROM plugin_kv_increment($1, $2, $3::bigint, $4::int)',
};

type PlainFunction = 'kv_get' | 'kv_set' | 'kv_delete' | 'kv_list';
type AtomicFunction = 'kv_get_many' | 'kv_update' | 'kv_increment';

/**
 * The functions of docs/abi.md "Key-value store". Reads, sets and deletions of one event-loop turn are one statement
 * each; every other call is one statement.
 */
export function kvHandlers(db: Database): Record<PlainFunction | AtomicFunction, HostHandler> {
  const handlers = { ...plainHandlers(db), ...atomicHandlers(db) };
  for (const name of Object.keys(handlers) as Array<keyof typeof handlers>) {
    const handler = handlers[name];
    handlers[name] = async (call, args) => {
      try {
        return await handler(call, args);
      } catch (error) {
        return failure(error);
      }
    };
  }
  return handlers;
}

/** What a plugin is answered when the database did not do what it asked for. */
function failure(error: unknown): HostResult {
  if (error instanceof CallTooLate) return hostError(HOST_ERROR.deadline);
  if (isUnavailable(error)) return hostError(HOST_ERROR.unavailable, 'the key-value store is unavailable');
  throw error;
}

function plainHandlers(db: Database): Record<PlainFunction, HostHandler> {
  const read = makeKvReads(db);
  const writes = makeKvWrites(db);
  return {
    async kv_get(call, args) {
      const key = args.text(0);
      const bad = badKey(key);
      if (bad !== null) return bad;
      const value = await read(call.plugin.id, key, call.deadline);
      return value === undefined ? hostError(HOST_ERROR.notFound) : { code: value.length, data: value };
    },
    async kv_set(call, args) {
      const key = args.text(0);
      const value = args.bytes(1);
      const ttl = args.int(2);
      const bad = badKey(key) ?? badValue(value, 'value') ?? badTtl(ttl);
      if (bad !== null) return bad;
      await writes.set(call.plugin.id, key, value, ttl, call.deadline);
      return { code: 0 };
    },
    async kv_delete(call, args) {
      const key = args.text(0);
      const bad = badKey(key);
      if (bad !== null) return bad;
      return { code: (await writes.delete(call.plugin.id, key, call.deadline)) ? 1 : 0 };
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

/** Functions that read or write more than one state in one statement: many keys at once, or a value and its successor. */
function atomicHandlers(db: Database): Record<AtomicFunction, HostHandler> {
  return {
    async kv_get_many(call, args) {
      const keys = parseKeys(args.text(0));
      if (!Array.isArray(keys)) return keys;
      const { rows } = await db.query<{ key: string; value: Buffer; bytes: string }>({
        ...GET_MANY,
        values: [call.plugin.id, keys, LIMITS.kvManyBytesMax],
      });
      const bytes = Number(rows[0]?.bytes ?? 0);
      if (bytes > LIMITS.kvManyBytesMax) return tooLargeTogether(bytes);
      const values = new Map(rows.map(r => [r.key, r.value]));
      // Writes the JSON member by member, because a JavaScript object would reorder numeric keys and treat `__proto__`
      // specially.
      const members = keys.map(key => {
        const value = values.get(key);
        return `${JSON.stringify(key)}:${value === undefined ? 'null' : `"${value.toString('base64')}"`}`;
      });
      const data = Buffer.from(`{${members.join(',')}}`);
      return { code: data.length, data };
    },
    async kv_update(call, args) {
      const key = args.text(0);
      const mode = args.int(1);
      const expected = args.bytes(2);
      const value = args.bytes(3);
      const ttl = args.int(4);
      if (mode !== MODE.ifAbsent && mode !== MODE.ifEqual)
        return hostError(HOST_ERROR.invalid, `mode ${mode} is not 0 (only if absent) or 1 (only if equal)`);
      const bad = badKey(key) ?? badValue(expected, 'expected value') ?? badValue(value, 'value') ?? badTtl(ttl);
      if (bad !== null) return bad;
      const { rows } = await db.query<{ written: boolean; present: Buffer | null }>({
        ...UPDATE,
        values: [call.plugin.id, key, mode === MODE.ifAbsent ? null : expected, value, ttl],
      });
      if (rows[0]?.written === true) return { code: 1 };
      const present = rows[0]?.present ?? null;
      // The first byte distinguishes an absent key from an empty value.
      return present === null ? { code: 0, data: ABSENT } : { code: 0, data: PRESENT, body: present };
    },
    async kv_increment(call, args) {
      const key = args.text(0);
      const delta = args.int64(1);
      const ttl = args.int(2);
      const bad = badKey(key) ?? badTtl(ttl);
      if (bad !== null) return bad;
      const { rows } = await db.query<{ total: string | null; present: Buffer | null }>({
        ...INCREMENT,
        values: [call.plugin.id, key, delta.toString(), ttl],
      });
      const total = rows[0]?.total ?? null;
      if (total !== null) return { code: total.length, data: total };
      const text = rows[0]?.present?.toString('latin1') ?? '';
      return hostError(
        HOST_ERROR.invalid,
        isInt64(text)
          ? `the value is ${text}; the sum with ${delta} is outside the range of int64`
          : 'the value is not the decimal text of an int64',
      );
    },
  };
}

const ABSENT = Uint8Array.of(0);
const PRESENT = Uint8Array.of(1);
