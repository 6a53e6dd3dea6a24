import { ABI_NEWEST, HOST_FUNCTION_BY_NAME, HOST_FUNCTIONS } from '../../src/abi/host-functions.ts';
import type { TestService } from './service.ts';
import { type WatPlugin, watPlugin } from './wat.ts';

/** Functions whose result is the length of what they park. */
const PARKS = new Set([
  'config_get',
  'kv_get',
  'kv_list',
  'sql_query',
  'sql_fetch',
  'sql_exec',
  'http_request',
  'notify_students',
  'file_meta',
  'file_url',
  'file_store',
  'file_read',
  'plugin_call',
  'host_info',
  'kv_get_many',
  'kv_increment',
]);
/** Parks only a raw part, whatever it returns. */
const PARKS_BODY = new Set(['kv_update']);
const OWN = new Set([
  'input_len',
  'input_read',
  'result_read',
  'body_len',
  'body_read',
  'error_len',
  'error_read',
  'respond',
]);

/** Where the script lies, what a `buf` points at, and where answers are gathered. */
const [SCRIPT_AT, BUFFER_AT, ANSWERS_AT] = [1 << 20, 16 << 20, 32 << 20];
const [LOOP, TRAP] = [255, 254];
/** A length with this bit means a pair that lies outside of the memory. */
const BAD = 0x8000_0000;

/**
 * A plugin that makes the host calls its request's body spells out, one after another, and answers what each gave (`script`, `answers`).
 *
 * @param names host functions it imports; all of its protocol version when absent
 */
export function callerPlugin(p: Omit<WatPlugin, 'handle' | 'imports' | 'memory'> & { names?: string[] }): Uint8Array {
  const rows = HOST_FUNCTIONS.filter(f =>
    p.names === undefined ? f.since <= (p.abi ?? ABI_NEWEST) : p.names.includes(f.name) || OWN.has(f.name),
  );
  const advance = (by: string): string => `(local.set $p (i32.add (local.get $p) ${by}))`;
  const branch = (name: string): string => {
    const row = HOST_FUNCTION_BY_NAME.get(name);
    if (row === undefined) throw new Error(name);
    const setup: string[] = [];
    const args: string[] = [];
    for (const [k, kind] of row.parameters.entries()) {
      if (kind === 'i64') {
        setup.push(`(local.set $l${k} (i64.load (local.get $p))) ${advance('(i32.const 8)')}`);
        args.push(`(local.get $l${k})`);
        continue;
      }
      setup.push(`(local.set $n${k} (i32.load (local.get $p))) ${advance('(i32.const 4)')}`);
      if (kind === 'i32') {
        args.push(`(local.get $n${k})`);
        continue;
      }
      setup.push(`(local.set $a${k} ${kind === 'buf' ? `(i32.const ${BUFFER_AT})` : '(local.get $p)'})
        (if (i32.lt_s (local.get $n${k}) (i32.const 0))
          (then (local.set $n${k} (i32.and (local.get $n${k}) (i32.const 0x7fffffff))) (local.set $a${k} (i32.const -16)))
          (else ${kind === 'buf' ? '' : advance(`(local.get $n${k})`)}))`);
      args.push(`(local.get $a${k}) (local.get $n${k})`);
    }
    return `(if (i32.eq (local.get $op) (i32.const ${HOST_FUNCTIONS.indexOf(row)})) (then ${setup.join('\n')}
      (local.set $r (call $${name} ${args.join(' ')}))
      (local.set $parks (i32.const ${PARKS.has(name) ? 1 : 0}))
      (local.set $raw (i32.const ${PARKS.has(name) || PARKS_BODY.has(name) ? 1 : 0}))
      (local.set $fills (i32.const ${name === 'file_read_into' ? 1 : 0}))))`;
  };
  const locals = [0, 1, 2, 3, 4].map(k => `(local $n${k} i32) (local $a${k} i32) (local $l${k} i64)`).join(' ');
  return watPlugin({
    ...p,
    imports: rows.map(f => f.name),
    memory: '1024',
    handle: `(local $p i32) (local $end i32) (local $o i32) (local $op i32) (local $r i32) (local $m i32) (local $parks i32) (local $raw i32) (local $fills i32)
      ${locals}
      (local.set $p (i32.const ${SCRIPT_AT}))
      (local.set $o (i32.const ${ANSWERS_AT}))
      (local.set $end (i32.add (local.get $p) (call $input_len (i32.const 1))))
      (drop (call $input_read (i32.const 1) (local.get $p) (i32.const ${BUFFER_AT - SCRIPT_AT})))
      (block $done (loop $next
        (br_if $done (i32.ge_u (local.get $p) (local.get $end)))
        (local.set $op (i32.load8_u (local.get $p))) ${advance('(i32.const 1)')}
        (if (i32.eq (local.get $op) (i32.const ${LOOP})) (then (loop $l (br $l))))
        (if (i32.eq (local.get $op) (i32.const ${TRAP})) (then unreachable))
        ${rows
          .filter(f => !OWN.has(f.name))
          .map(f => branch(f.name))
          .join('\n')}
        (i32.store (local.get $o) (local.get $r))
        (local.set $m (i32.const 0))
        (if (i32.lt_s (local.get $r) (i32.const 0))
          (then (local.set $m (call $error_len))
            (drop (call $error_read (i32.add (local.get $o) (i32.const 8)) (local.get $m))))
          (else (if (local.get $parks)
            (then (local.set $m (local.get $r))
              (drop (call $result_read (i32.add (local.get $o) (i32.const 8)) (local.get $m)))))
            (if (local.get $fills)
            (then (local.set $m (i32.and (local.get $r) (i32.const 0x3fffffff)))
              (memory.copy (i32.add (local.get $o) (i32.const 8)) (i32.const ${BUFFER_AT}) (local.get $m))))))
        (i32.store offset=4 (local.get $o) (local.get $m))
        (local.set $o (i32.add (local.get $o) (i32.add (local.get $m) (i32.const 8))))
        (local.set $m (if (result i32) (local.get $raw) (then (call $body_len)) (else (i32.const 0))))
        (i32.store (local.get $o) (local.get $m))
        (drop (call $body_read (i32.const 0) (i32.add (local.get $o) (i32.const 4)) (local.get $m)))
        (local.set $o (i32.add (local.get $o) (i32.add (local.get $m) (i32.const 4))))
        (br $next)))
      (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const ${ANSWERS_AT}) (i32.sub (local.get $o) (i32.const ${ANSWERS_AT}))))
      (i32.const 0)`,
  });
}

/** A pair that lies outside of the memory. */
export const BAD_PAIR = Symbol('bad pair');
export type Argument = string | number | bigint | Uint8Array | typeof BAD_PAIR;
/** A function with its arguments (a number for a `buf` is its length), or an end of another kind. */
export type ScriptedCall = [name: string, ...args: Argument[]] | 'loop' | 'trap';

export function script(calls: readonly ScriptedCall[]): Uint8Array<ArrayBuffer> {
  const parts: Buffer[] = [];
  const word = (n: number): void => {
    const b = Buffer.alloc(4);
    b.writeUInt32LE(n >>> 0);
    parts.push(b);
  };
  for (const call of calls) {
    if (call === 'loop' || call === 'trap') {
      parts.push(Buffer.from([call === 'loop' ? LOOP : TRAP]));
      continue;
    }
    const [name, ...args] = call;
    const row = HOST_FUNCTION_BY_NAME.get(name);
    if (row === undefined) throw new Error(`no host function ${name}`);
    parts.push(Buffer.from([HOST_FUNCTIONS.indexOf(row)]));
    for (const [k, kind] of row.parameters.entries()) {
      const value = args[k] ?? (kind === 'i32' || kind === 'i64' || kind === 'buf' ? 0 : '');
      if (value === BAD_PAIR) word(BAD | 16);
      else if (kind === 'i64') {
        const b = Buffer.alloc(8);
        b.writeBigInt64LE(BigInt(typeof value === 'bigint' || typeof value === 'number' ? value : 0));
        parts.push(b);
      } else if (typeof value === 'number') word(value);
      else if (typeof value !== 'bigint') {
        const bytes = Buffer.from(value);
        word(bytes.length);
        parts.push(bytes);
      }
    }
  }
  return new Uint8Array(Buffer.concat(parts));
}

/** What a call gave: the result, what it parked (or the text of the error), the raw part. */
export type CallAnswer = { code: number; text: string; bytes: Buffer; body: Buffer };

export function answers(bytes: Buffer): CallAnswer[] {
  const out: CallAnswer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const code = bytes.readInt32LE(at);
    const length = bytes.readUInt32LE(at + 4);
    const data = bytes.subarray(at + 8, at + 8 + length);
    at += 8 + length;
    const bodyLength = bytes.readUInt32LE(at);
    out.push({ code, text: data.toString(), bytes: data, body: bytes.subarray(at + 4, at + 4 + bodyLength) });
    at += 4 + bodyLength;
  }
  return out;
}

/** Has an installed caller plugin make calls in one execution; the status when it did not answer 200. */
export async function callHost(
  s: Pick<TestService, 'base'>,
  plugin: string,
  calls: readonly ScriptedCall[],
  headers: Record<string, string> = {},
): Promise<CallAnswer[]> {
  const r = await fetch(`${s.base}/api/triggers/http/${plugin}/run`, { method: 'POST', headers, body: script(calls) });
  const bytes = Buffer.from(await r.arrayBuffer());
  if (r.status !== 200) throw new Error(`${r.status} ${bytes.toString()}`);
  return answers(bytes);
}
