import { HOST_ERROR } from '../abi/host-functions.ts';
import { type HostArgument, type HostResult, hostError } from '../abi/host-result.ts';
import { messageOf } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';

/** The host functions for tests of authors: what a plugin stores and sends is kept in memory, for the test to look at. */

/** A file of a plugin in a test. */
export type TestFile = { id: string; name: string; mime_type: string; file_type: string; bytes: Uint8Array };

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
  readonly kv = new Map<string, Uint8Array>();
  readonly files = new Map<string, TestFile>();
  readonly requests: OutgoingRequest[] = [];
  /** Messages of `NotifyUser`, `NotifyChat` and `NotifyStudents`. */
  readonly notifications: Array<{ to: unknown; message: unknown }> = [];
  readonly events: Array<{ name: string; payload: unknown }> = [];
  /** Replies of the execution that runs. */
  replies: unknown[] = [];
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

type Call = (host: MemoryHost, args: readonly HostArgument[]) => HostResult | Promise<HostResult>;

const isInt64 = (value: string): boolean =>
  /^-?[0-9]{1,19}$/.test(value) && BigInt.asIntN(64, BigInt(value)) === BigInt(value);

const KEY_VALUES: Record<string, Call> = {
  kv_get({ kv }, [key]) {
    const value = kv.get(text(key));
    return value === undefined ? hostError(HOST_ERROR.notFound) : { code: value.length, data: value };
  },
  kv_set({ kv }, [key, value]) {
    kv.set(text(key), bytes(value));
    return DONE;
  },
  kv_delete: ({ kv }, [key]) => ({ code: kv.delete(text(key)) ? 1 : 0 }),
  kv_list({ kv }, [prefix, after, limit]) {
    const max = int(limit) === 0 ? LIMITS.kvListMax : int(limit);
    const all = [...kv.keys()].filter(k => k.startsWith(text(prefix)) && k > text(after)).sort();
    const keys = all.slice(0, max);
    return parks({ keys, next: all.length > max ? keys.at(-1) : null });
  },
  kv_get_many({ kv }, [keys]) {
    const names: string[] = JSON.parse(text(keys));
    const encoded = (name: string): string | null => {
      const value = kv.get(name);
      return value === undefined ? null : Buffer.from(value).toString('base64');
    };
    return parks(Object.fromEntries(names.map(name => [name, encoded(name)])));
  },
  kv_update({ kv }, [key, mode, expected, value]) {
    const present = kv.get(text(key));
    const writes =
      int(mode) === 0 ? present === undefined : present !== undefined && Buffer.compare(present, bytes(expected)) === 0;
    if (!writes) return { code: 0, data: Uint8Array.of(present === undefined ? 0 : 1), body: present };
    kv.set(text(key), bytes(value));
    return { code: 1 };
  },
  kv_increment({ kv }, [key, delta]) {
    const present = Buffer.from(kv.get(text(key)) ?? Buffer.from('0')).toString();
    const sum = isInt64(present) ? BigInt(present) + BigInt.asIntN(64, BigInt(delta as bigint)) : null;
    if (sum === null || !isInt64(String(sum)))
      return hostError(
        HOST_ERROR.invalid,
        'the value is not the decimal text of an int64, or the sum is outside of it',
      );
    kv.set(text(key), Buffer.from(String(sum)));
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

const FILES: Record<string, Call> = {
  file_meta({ files }, [id]) {
    const file = files.get(text(id));
    return file === undefined ? hostError(HOST_ERROR.notFound) : parks(refOf(file));
  },
  file_url: ({ files }, [id]) => (files.has(text(id)) ? parks('') : hostError(HOST_ERROR.notFound)),
  file_read_into({ files }, [id, offset, length]) {
    const file = files.get(text(id));
    if (file === undefined) return hostError(HOST_ERROR.notFound);
    const from = Number(offset);
    const chunk = file.bytes.subarray(from, from + Math.min(int(length), LIMITS.fileChunkBytesMax));
    const isEnd = from + chunk.length >= file.bytes.length;
    return { code: chunk.length | (isEnd ? END_OF_FILE : 0), data: chunk };
  },
  file_store({ files }, [order, content]) {
    const { file_type, mime_type, name }: TestFile = JSON.parse(text(order));
    const id = (files.size + 1).toString(16).padStart(32, '0');
    const file = { id, name, mime_type, file_type, bytes: bytes(content) };
    files.set(id, file);
    return parks(refOf(file));
  },
};

const TALK: Record<string, Call> = {
  reply({ replies }, [message]) {
    replies.push(JSON.parse(text(message)));
    return DONE;
  },
  notify_user({ notifications }, [id, message]) {
    notifications.push({ to: { user: BigInt(id as bigint) }, message: JSON.parse(text(message)) });
    return DONE;
  },
  notify_chat({ notifications }, [chat, message]) {
    notifications.push({ to: { chat: text(chat) }, message: JSON.parse(text(message)) });
    return DONE;
  },
  notify_students({ notifications }, [filter, message]) {
    notifications.push({ to: { students: JSON.parse(text(filter)) }, message: JSON.parse(text(message)) });
    return parks({ queued: 1, unreachable: 0 });
  },
  event_publish({ events }, [name, payload]) {
    events.push({ name: text(name), payload: JSON.parse(text(payload)) });
    return DONE;
  },
};

const OTHERS: Record<string, Call> = {
  async http_request({ outside, requests }, [order, body]) {
    const asked: { method?: string; url: string; headers?: Record<string, string> } = JSON.parse(text(order));
    const request = { method: asked.method ?? 'GET', url: asked.url, headers: asked.headers ?? {}, body: bytes(body) };
    requests.push(request);
    if (outside.http === undefined)
      return hostError(HOST_ERROR.unavailable, `the test answers no requests: give testHost({ http: request => ... })`);
    const { body: answer = '', headers = {}, status = 200 } = await outside.http(request);
    const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
    const data = JSON.stringify({ status, headers: lower, url: request.url });
    return { code: Buffer.byteLength(data), data, body: Buffer.from(answer) };
  },
  async plugin_call({ outside }, [target, name, value]) {
    const called = outside.plugins?.[text(target)]?.[text(name)];
    if (called === undefined)
      return hostError(
        HOST_ERROR.notFound,
        `the test has no function "${text(name)}" of plugin "${text(target)}": give testHost({ plugins: { ... } })`,
      );
    try {
      return parks(JSON.stringify((await called(JSON.parse(Buffer.from(bytes(value)).toString() || 'null'))) ?? null));
    } catch (error) {
      return hostError(HOST_ERROR.internal, messageOf(error));
    }
  },
};

const CALLS: Record<string, Call> = { ...KEY_VALUES, ...FILES, ...TALK, ...OTHERS };

/** Answers a host call; its permission has been checked. */
export function answerCall(
  host: MemoryHost,
  name: string,
  args: readonly HostArgument[],
): HostResult | Promise<HostResult> {
  const call = CALLS[name];
  if (call !== undefined) return call(host, args);
  return hostError(
    HOST_ERROR.unavailable,
    `${name} is not there in plugin test; plugin dev has databases and everything else`,
  );
}
