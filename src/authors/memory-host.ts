import { HOST_ERROR, type HostFunction } from '../abi/host-functions.ts';
import { type HostArgument, type HostResult, hostError } from '../abi/host-result.ts';
import { messageOf as errorText } from '../base/errors.ts';
import { parseWithBigints, textWithBigints } from '../base/exact-json.ts';
import { LIMITS } from '../base/limits.ts';
import { badEvent } from '../host/events.ts';
import { assertNoBody, type Order, parseOrder } from '../host/http-order.ts';
import { badKey, badTtl, badValue, isInt64, MODE, parseKeys, tooLargeTogether } from '../host/kv-arguments.ts';
import {
  assertFits,
  assertMayReply,
  assertUserId,
  parseMessage,
  parseStudentFilter,
} from '../host/message-arguments.ts';
import { Refusal } from '../host/refusal.ts';
import { parseStoreOrder } from '../host/store-order.ts';
import { callPermission } from '../plugins/manifest.ts';

/** The host functions for tests of authors: what a plugin stores and sends is kept in memory, for the test to look at. */

/**
 * A file of a plugin in a test. Authors see it as `TestFile` of sdk/typescript/kit/test.d.ts, which is copied into their
 * folders and can import nothing from here.
 */
export type TestFile = {
  id: string;
  name: string;
  mime_type: string;
  file_type: string;
  bytes: Uint8Array;
  /** The user who has uploaded it: only HTTP requests of this user read it. Without it, it is the plugin's own. */
  user?: number | bigint | null;
  /** When its time to live ends, in ms. */
  ends?: number;
};

/** A request the plugin sent to another host. */
export type OutgoingRequest = { method: string; url: string; headers: Record<string, string>; body: Uint8Array };

export type OutgoingAnswer = { status?: number; headers?: Record<string, string>; body?: string | Uint8Array };

/** Answers what a plugin asks of others. */
export type Outside = {
  /** Answers requests to other hosts; without it none can be reached. */
  http?: (request: OutgoingRequest) => OutgoingAnswer | Promise<OutgoingAnswer>;
  /** Functions of other plugins, by plugin and name; they get and give JSON values. */
  plugins?: Record<string, Record<string, (value: unknown) => unknown>>;
};

/** What one plugin stores and sends in a test. */
export class MemoryHost {
  readonly kv = new MemoryKv();
  readonly files = new Map<string, TestFile>();
  readonly requests: OutgoingRequest[] = [];
  /** Messages of `NotifyUser`, `NotifyChat` and `NotifyStudents`. */
  readonly notifications: Array<{ to: unknown; message: unknown }> = [];
  readonly events: Array<{ name: string; payload: unknown }> = [];
  outside: Outside = {};
}

const text = (value: HostArgument | undefined): string => (typeof value === 'string' ? value : '');
const bytes = (value: HostArgument | undefined): Uint8Array => (value instanceof Uint8Array ? value : new Uint8Array());
const int = (value: HostArgument | undefined): number => Number(value ?? 0);
const parks = (value: unknown): HostResult => {
  const data = typeof value === 'string' ? value : JSON.stringify(value);
  return { code: Buffer.byteLength(data), data };
};
const DONE: HostResult = { code: 0 };

/** Who an execution runs for, what it may do, and what it has replied. */
export type Caller = {
  kind: 'http' | 'messenger' | 'call';
  user: number | null;
  permissions: ReadonlySet<string>;
  replies: unknown[];
};

type Call = (host: MemoryHost, args: readonly HostArgument[], caller: Caller) => HostResult | Promise<HostResult>;

/** Values by key, with their times to live. */
class MemoryKv {
  readonly #values = new Map<string, Uint8Array>();
  /** When values end, in ms; those without a time to live are left out. */
  readonly #ends = new Map<string, number>();

  /** Values whose time to live has not ended. */
  get values(): Map<string, Uint8Array> {
    const now = Date.now();
    for (const [key, end] of this.#ends)
      if (end <= now) {
        this.#ends.delete(key);
        this.#values.delete(key);
      }
    return this.#values;
  }

  /** @param ttlSeconds 0: it stays */
  set(key: string, value: Uint8Array, ttlSeconds: number): void {
    this.#values.set(key, value);
    if (ttlSeconds === 0) this.#ends.delete(key);
    else this.#ends.set(key, Date.now() + ttlSeconds * 1000);
  }

  /** Gives a value that stays as long as the one before, unless there is another time to live. */
  replace(key: string, value: Uint8Array, ttlSeconds: number): void {
    const end = this.#ends.get(key);
    this.set(key, value, ttlSeconds);
    if (ttlSeconds === 0 && end !== undefined) this.#ends.set(key, end);
  }
}

/** Turns a refusal into the result of the call. */
const guarded =
  (call: Call): Call =>
  (...given) => {
    try {
      return call(...given);
    } catch (error) {
      if (error instanceof Refusal) return hostError(error.code, error.message);
      throw error;
    }
  };

const KEY_VALUES: Record<string, Call> = {
  kv_get({ kv }, [key]) {
    const bad = badKey(text(key));
    if (bad !== null) return bad;
    const value = kv.values.get(text(key));
    return value === undefined ? hostError(HOST_ERROR.notFound) : { code: value.length, data: value };
  },
  kv_set({ kv }, [key, value, ttl]) {
    const bad = badKey(text(key)) ?? badValue(bytes(value), 'value') ?? badTtl(int(ttl));
    if (bad !== null) return bad;
    kv.set(text(key), bytes(value), int(ttl));
    return DONE;
  },
  kv_delete: ({ kv }, [key]) => badKey(text(key)) ?? { code: kv.values.delete(text(key)) ? 1 : 0 },
  kv_list({ kv }, [prefix, after, limit]) {
    if (int(limit) < 0) return hostError(HOST_ERROR.invalid, 'the limit is below zero');
    const max = int(limit) === 0 ? LIMITS.kvListMax : Math.min(int(limit), LIMITS.kvListMax);
    const all = [...kv.values.keys()].filter(k => k.startsWith(text(prefix)) && k > text(after)).sort();
    const keys = all.slice(0, max);
    return parks({ keys, next: all.length > max ? keys.at(-1) : null });
  },
  kv_get_many({ kv }, [given]) {
    const keys = parseKeys(text(given));
    if (!Array.isArray(keys)) return keys;
    const { values } = kv;
    const size = keys.reduce((sum, key) => sum + (values.get(key)?.length ?? 0), 0);
    if (size > LIMITS.kvManyBytesMax) return tooLargeTogether(size);
    const encoded = (key: string): string | null => {
      const value = values.get(key);
      return value === undefined ? null : Buffer.from(value).toString('base64');
    };
    return parks(`{${keys.map(key => `${JSON.stringify(key)}:${JSON.stringify(encoded(key))}`).join(',')}}`);
  },
  kv_update({ kv }, [key, mode, expected, value, ttl]) {
    const bad =
      badKey(text(key)) ??
      badValue(bytes(expected), 'expected value') ??
      badValue(bytes(value), 'value') ??
      badTtl(int(ttl));
    if (bad !== null) return bad;
    const present = kv.values.get(text(key));
    const writes =
      int(mode) === MODE.ifAbsent
        ? present === undefined
        : present !== undefined && Buffer.compare(present, bytes(expected)) === 0;
    if (!writes) return { code: 0, data: Uint8Array.of(present === undefined ? 0 : 1), body: present };
    kv.set(text(key), bytes(value), int(ttl));
    return { code: 1 };
  },
  kv_increment({ kv }, [key, delta, ttl]) {
    const bad = badKey(text(key)) ?? badTtl(int(ttl));
    if (bad !== null) return bad;
    const present = Buffer.from(kv.values.get(text(key)) ?? Buffer.from('0')).toString();
    const sum = isInt64(present) ? BigInt(present) + BigInt.asIntN(64, BigInt(delta as bigint)) : null;
    if (sum === null || !isInt64(String(sum)))
      return hostError(
        HOST_ERROR.invalid,
        'the value is not the decimal text of an int64, or the sum is outside of it',
      );
    kv.replace(text(key), Buffer.from(String(sum)), int(ttl));
    return parks(String(sum));
  },
};

const refOf = ({ bytes: content, file_type, id, mime_type, name }: TestFile): object => ({
  id,
  name,
  mime_type,
  size: content.length,
  file_type,
});

/** Set in the result of `file_read_into` for the last chunk. */
const END_OF_FILE = 1 << 30;

/** The file if the execution may read it, as the service has it (docs/files.md "Who may read"). */
function readable({ files }: MemoryHost, id: HostArgument | undefined, { kind, user }: Caller): TestFile | undefined {
  const file = files.get(text(id));
  if (file === undefined || (file.ends !== undefined && file.ends <= Date.now())) return undefined;
  if (file.user === undefined || file.user === null) return file;
  return kind === 'http' && user === Number(file.user) ? file : undefined;
}

const FILES: Record<string, Call> = {
  file_meta(host, [id], caller) {
    const file = readable(host, id, caller);
    return file === undefined ? hostError(HOST_ERROR.notFound) : parks(refOf(file));
  },
  file_url: (host, [id], caller) =>
    readable(host, id, caller) === undefined ? hostError(HOST_ERROR.notFound) : parks(''),
  file_read_into(host, [id, offset, length], caller) {
    const file = readable(host, id, caller);
    if (file === undefined) return hostError(HOST_ERROR.notFound);
    const from = Number(offset);
    if (from < 0) return hostError(HOST_ERROR.invalid, 'the offset is below zero');
    const chunk = file.bytes.subarray(from, from + Math.min(int(length), LIMITS.fileChunkBytesMax));
    const isEnd = from + chunk.length >= file.bytes.length;
    return { code: chunk.length | (isEnd ? END_OF_FILE : 0), data: chunk };
  },
  file_store: guarded(({ files }, [order, content]) => {
    const { description, ttlMs } = parseStoreOrder(text(order));
    const id = (files.size + 1).toString(16).padStart(32, '0');
    const file = {
      ...{ id, name: description.name, mime_type: description.mimeType, file_type: description.fileType },
      bytes: bytes(content),
      ...(ttlMs === null ? {} : { ends: Date.now() + ttlMs }),
    };
    files.set(id, file);
    return parks(refOf(file));
  }),
};

/** Checks a message as the service does, and that the execution may read its files. @returns it as it was given */
function messageOf(host: MemoryHost, json: HostArgument | undefined, caller: Caller): unknown {
  const { files } = parseMessage(text(json));
  if (files.length > 0 && !caller.permissions.has('file')) throw new Refusal(HOST_ERROR.denied, 'permission denied');
  for (const { id } of files) {
    const file = readable(host, id, caller);
    if (file === undefined) throw new Refusal(HOST_ERROR.notFound, `there is no file ${JSON.stringify(id)}`);
    assertFits(id, file.bytes.length);
  }
  const message = parseWithBigints(text(json));
  // Left out where there are none, by some kits.
  return typeof message === 'object' && message !== null ? { files: [], ...message } : message;
}

const TALK: Record<string, Call> = {
  reply: guarded((host, [message], caller) => {
    assertMayReply(caller.kind, caller.replies.length);
    caller.replies.push(messageOf(host, message, caller));
    return DONE;
  }),
  notify_user: guarded((host, [id, message], caller) => {
    const user = BigInt(id as bigint);
    const said = messageOf(host, message, caller);
    assertUserId(user);
    host.notifications.push({ to: { user }, message: said });
    return DONE;
  }),
  notify_chat: guarded((host, [chat, message], caller) => {
    host.notifications.push({ to: { chat: text(chat) }, message: messageOf(host, message, caller) });
    return DONE;
  }),
  notify_students: guarded((host, [filter, message], caller) => {
    parseStudentFilter(text(filter));
    host.notifications.push({
      to: { students: parseWithBigints(text(filter)) },
      message: messageOf(host, message, caller),
    });
    return parks({ queued: 1, unreachable: 0 });
  }),
  event_publish({ events }, [name, payload]) {
    const bad = badEvent(text(name), text(payload));
    if (bad !== null) return bad;
    events.push({ name: text(name), payload: parseWithBigints(text(payload)) });
    return DONE;
  },
};

/** Names of headers as they are given everywhere else. */
const lowerNames = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

const OTHERS: Record<string, Call> = {
  async http_request({ outside, requests }, [order, body]) {
    let asked: Order;
    try {
      asked = parseOrder(text(order));
      assertNoBody(asked, bytes(body));
    } catch (error) {
      if (error instanceof Refusal) return hostError(error.code, error.message);
      throw error;
    }
    const request = { method: asked.method, url: asked.url.href, headers: asked.headers, body: bytes(body) };
    requests.push(request);
    if (outside.http === undefined)
      return hostError(HOST_ERROR.unavailable, `the test answers no requests: give testHost({ http: request => ... })`);
    try {
      const { body: answer = '', headers = {}, status = 200 } = await outside.http(request);
      const data = JSON.stringify({ status, headers: lowerNames(headers), url: request.url });
      return { code: Buffer.byteLength(data), data, body: Buffer.from(answer) };
    } catch (error) {
      return hostError(HOST_ERROR.unavailable, errorText(error));
    }
  },
  async plugin_call({ outside }, [target, name, value]) {
    const called = outside.plugins?.[text(target)]?.[text(name)];
    if (called === undefined)
      return hostError(
        HOST_ERROR.notFound,
        `the test has no function "${text(name)}" of plugin "${text(target)}": give testHost({ plugins: { ... } })`,
      );
    try {
      const given = parseWithBigints(Buffer.from(bytes(value)).toString() || 'null');
      const answer = await called(given);
      // A function that gives no answer gives no bytes.
      return parks(answer === undefined ? '' : textWithBigints(answer));
    } catch (error) {
      return hostError(HOST_ERROR.internal, errorText(error));
    }
  },
};

const CALLS: Record<string, Call> = { ...KEY_VALUES, ...FILES, ...TALK, ...OTHERS };

/** Answers a host call as far as it is permitted. */
export function answerCall(
  host: MemoryHost,
  { name, permission }: HostFunction,
  args: readonly HostArgument[],
  caller: Caller,
): HostResult | Promise<HostResult> {
  const needed = permission === 'plugins:call' ? callPermission(text(args[0])) : permission;
  if (needed !== null && !caller.permissions.has(needed)) return hostError(HOST_ERROR.denied);
  const call = CALLS[name];
  if (call !== undefined) return call(host, args, caller);
  return hostError(
    HOST_ERROR.unavailable,
    `${name} is not there in plugin test; plugin dev has databases and everything else`,
  );
}
