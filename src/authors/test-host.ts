import path from 'node:path';
import { ZodError, z } from 'zod';
import { type ExecutionOutcome, OUTCOME_KINDS } from '../abi/execution-outcome.ts';
import { ENTRY } from '../abi/shared-layout.ts';
import { OperatorError } from '../base/errors.ts';
import { parseWithBigints, textWithBigints } from '../base/exact-json.ts';
import { LIMITS } from '../base/limits.ts';
import type { HttpAuth } from '../base/principal.ts';
import { configFieldsOf, type HttpTrigger, httpTriggersOf, type Manifest, permissionsOf } from '../plugins/manifest.ts';
import { TriggerRoutes } from '../plugins/trigger-routes.ts';
import { buildProject, endBuilds } from '../projects/build-project.ts';
import { readProject } from '../projects/project.ts';
import { hostBearerOf, httpEvent } from '../triggers/trigger-event.ts';
import { AuthorSandbox } from './author-sandbox.ts';
import { Lockstep } from './lockstep.ts';
import { answerCall, type Caller, MemoryHost, type Outside, type TestFile } from './memory-host.ts';
import { type Refusal, refusalOf, type TestCaller } from './test-refusal.ts';

/** Runs the module of a plugin in the sandbox of the service, for tests of its author (`@plugin-host/sdk/test`). */

/** Who a test calls as, and what the plugin has. */
export type CallOptions = {
  user?: number | bigint;
  serviceKey?: number | bigint;
  headers?: Record<string, string>;
  /** Text, bytes, or a value that is sent as JSON. */
  body?: unknown;
  /** The access that the plugin suggests decides first, for a user who has this; without it every call is let in. */
  access?: TestCaller;
  /** Set before the call; what was there stays. */
  kv?: Record<string, string | Uint8Array>;
  /** Permissions the administrator has granted; all the plugin requires without it. */
  grant?: readonly string[];
};

export type HostOptions = Outside & {
  /** Folder of the plugin; the present one without it. */
  folder?: string;
  /** Values of its configuration. */
  config?: Record<string, string>;
  timeoutMs?: number;
};

type Line = { level: 'debug' | 'info' | 'warn' | 'error'; text: string };

/** How an execution ended, and what it said. */
export type Ended = {
  /** `ok`, `handler_error`, `trapped`, `deadline` ... */
  outcome: string;
  /** Why it failed, with the author's lines; empty when it did not. */
  failure: string;
  logs: Line[];
  runMs: number;
};

export type HTTPAnswer = Ended & {
  status: number;
  headers: Record<string, string>;
  text: string;
  bytes: Uint8Array;
  /** The body as JSON; null when it is none. Reading that of an execution that failed throws why it failed. */
  json: unknown;
};

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
const ENTRIES = { http: ENTRY.handle, messenger: ENTRY.message, call: ENTRY.call } as const;
const NO_BEARER = hostBearerOf(['plugin-host-test-']);

/** JSON of an answer; null for what is none. */
function jsonOf(text: string): unknown {
  try {
    return parseWithBigints(text);
  } catch {
    return null;
  }
}

function headersOf(flat: string): Record<string, string> {
  const parts = flat.split('\0');
  const headers: Record<string, string> = {};
  for (let k = 0; k + 1 < parts.length; k += 2) headers[(parts[k] ?? '').toLowerCase()] = parts[k + 1] ?? '';
  return headers;
}

/**
 * JSON of an execution. Of one that failed there is none: reading it throws why it failed, which a test that fails shows then.
 *
 * @param name of the member of the answer that has it
 */
function withJson<A extends Ended, N extends string>(answer: A, name: N, text: string): A & Record<N, unknown> {
  const { failure, outcome } = answer;
  const value = { value: jsonOf(text), enumerable: true, writable: true, configurable: true };
  const get = (): never => {
    throw new Error(`the execution failed (${outcome})${failure === '' ? '' : `: ${failure}`}`);
  };
  // To print the answer of an execution that failed throws nothing.
  return Object.defineProperty(answer, name, outcome === 'ok' ? value : { get, enumerable: false }) as A &
    Record<N, unknown>;
}

const endedOf = ({ failure, kind, log, runMs }: ExecutionOutcome): Ended => ({
  outcome: OUTCOME_KINDS.includes(kind) ? kind : 'unknown',
  failure,
  logs: log.map(({ level, text }) => ({ level: LEVELS[level] ?? 'info', text })),
  runMs,
});

/** The statuses of the service for executions that give no answer. */
const STATUS: Record<string, number> = { ok: 204, deadline: 504, memory_budget: 503, no_slot: 503, queue_full: 503 };

/** Bytes of a body, and its type where it is JSON. */
function bodyOf(body: unknown): { bytes: Uint8Array | null; type: Record<string, string> } {
  if (body === undefined || body === null) return { bytes: null, type: {} };
  if (body instanceof Uint8Array) return { bytes: body, type: {} };
  if (typeof body === 'string') return { bytes: Buffer.from(body), type: {} };
  return { bytes: Buffer.from(textWithBigints(body)), type: { 'content-type': 'application/json' } };
}

const OF_EVERY_CALL = ['user', 'serviceKey', 'kv', 'grant'];
/** What a call may have besides, by the method. */
const OPTIONS: Readonly<Record<'http' | 'message' | 'call', readonly string[]>> = {
  http: [...OF_EVERY_CALL, 'headers', 'body', 'access'],
  message: [...OF_EVERY_CALL, 'files'],
  call: [...OF_EVERY_CALL, 'from'],
};

/** @throws Error for an option a call does not have, which would be left out without a word */
function assertOptions(method: keyof typeof OPTIONS, options: CallOptions): void {
  for (const name of Object.keys(options))
    if (!OPTIONS[method].includes(name))
      throw new Error(`${method}() has no option "${name}"; it has ${OPTIONS[method].join(', ')} (kit/test.d.ts)`);
  if (options.user !== undefined && options.serviceKey !== undefined)
    throw new Error('a call has one caller: give a user, or a service key');
  for (const permission of options.grant ?? [])
    if (!/^(?:sql|kv|network|notify|events|file|plugins:call:.+)$/.test(permission))
      throw new Error(`grant: "${permission}" is no permission; there are ${PERMISSION_NAMES}`);
}

const PERMISSION_NAMES = 'sql, kv, network, notify, events, file and plugins:call:<target>';

/** @throws Error for a number that no user of a service has */
function userId(user: number | bigint): number {
  const id = Number(user);
  if (Number.isSafeInteger(id) && id > 0) return id;
  throw new Error(`the user ${user} is no id: a service gives out 1, 2, 3 and so on, up to ${Number.MAX_SAFE_INTEGER}`);
}

const authOf = ({ serviceKey, user }: CallOptions): HttpAuth | null =>
  user !== undefined
    ? { kind: 'user', user_id: userId(user) }
    : serviceKey !== undefined
      ? { kind: 'service', service_key_id: Number(serviceKey) }
      : null;

/** @throws Error that says how `access` is written */
function accessOf({ access }: HttpTrigger, options: CallOptions, caller: TestCaller): Refusal | null {
  try {
    return refusalOf(access, authOf(options), caller);
  } catch (error) {
    if (!(error instanceof ZodError)) throw error;
    throw new Error(`access of a call: ${z.prettifyError(error)} (kit/test.d.ts)`, { cause: error });
  }
}

/** What a caller gets who is not let in: the plugin does not run. */
const refused = ({ status, text }: Refusal): HTTPAnswer => ({
  ...{ outcome: 'refused', failure: '', logs: [], runMs: 0, status, text },
  ...{ headers: {}, bytes: Buffer.from(text), json: null },
});

/** Why the plugin could not be installed with this configuration. */
function configMistake(manifest: Manifest, config: Readonly<Record<string, string>>): string | null {
  const fields = configFieldsOf(manifest);
  const unset = fields.find(f => f.required && config[f.name] === undefined);
  if (unset !== undefined)
    return `the plugin requires the configuration field "${unset.name}": give it in the config of the test host`;
  const unknown = Object.keys(config).find(name => !fields.some(f => f.name === name));
  if (unknown === undefined) return null;
  return `"${unknown}" is no configuration field of the plugin; it has ${fields.map(f => f.name).join(', ') || 'none'}`;
}

/** A plugin in the sandbox, and what it stores and sends. Key-value data and files stay from call to call. */
export class TestHost {
  readonly manifest: Manifest;
  readonly #host = new MemoryHost();
  readonly #lockstep = new Lockstep(() => this.#sandbox.threads);
  readonly #sandbox: AuthorSandbox<Caller>;
  readonly #timeoutMs: number;

  constructor(bytes: Uint8Array, options: HostOptions) {
    this.#host.outside = options;
    this.#timeoutMs = options.timeoutMs ?? LIMITS.executionMsMax;
    this.#sandbox = new AuthorSandbox<Caller>(bytes, {
      config: options.config ?? {},
      timeoutMs: this.#timeoutMs,
      dispatch: (row, args, caller) => this.#lockstep.answer(() => answerCall(this.#host, row, args, caller)),
    });
    this.manifest = this.#sandbox.manifest;
    const mistake = configMistake(this.manifest, options.config ?? {});
    if (mistake === null) return;
    void this.#sandbox.close();
    throw new OperatorError(mistake);
  }

  /** What the plugin has stored: text or bytes by key. */
  get kv(): Map<string, Uint8Array> {
    return this.#host.kv.values;
  }
  /** The text of a key; null when it is absent. */
  kvText(key: string): string | null {
    const value = this.#host.kv.values.get(key);
    return value === undefined ? null : Buffer.from(value).toString();
  }
  get files(): Map<string, TestFile> {
    return this.#host.files;
  }
  /** Requests it sent to other hosts. */
  get requests(): MemoryHost['requests'] {
    return this.#host.requests;
  }
  get notifications(): MemoryHost['notifications'] {
    return this.#host.notifications;
  }
  get events(): MemoryHost['events'] {
    return this.#host.events;
  }

  /** Adds a file the plugin may read. @returns its id */
  addFile(name: string, content: string | Uint8Array, more: Partial<TestFile> = {}): string {
    if (typeof name !== 'string' || (typeof content !== 'string' && !(content instanceof Uint8Array)))
      throw new Error('write addFile(name, content): a text, and a text or bytes; it returns the id of the file');
    const id = (this.#host.files.size + 1).toString(16).padStart(32, '0');
    const bytes = Buffer.from(content);
    this.#host.files.set(id, { id, name, mime_type: 'text/plain', file_type: 'document', bytes, ...more });
    return id;
  }

  /**
   * Calls an HTTP trigger; past the access rules of the service, unless `access` is given.
   *
   * @param request like `GET /greet?name=Ada`; the path is that of the trigger
   * @throws Error when no trigger has this method and path
   */
  async http(request: string, options: CallOptions = {}): Promise<HTTPAnswer> {
    assertOptions('http', options);
    const [, method = '', path = '', query = ''] = /^([A-Z]+) (\/[^?]*|)(?:\?(.*))?$/.exec(request) ?? [];
    if (method === '') throw new Error(`"${request}" is no request: write it like "GET /greet?name=Ada"`);
    const triggers = httpTriggersOf(this.manifest);
    const match = new TriggerRoutes(triggers.map(t => ({ trigger: t, target: t }))).match(method, path);
    if (match.kind !== 'found') {
      const known = triggers.map(t => `${t.methods.join(', ')} ${t.path}`).join('; ');
      throw new Error(`the plugin has no trigger for "${method} ${path}"; it has ${known || 'none'}`);
    }
    const refusal = options.access === undefined ? null : accessOf(match.target, options, options.access);
    if (refusal !== null) return refused(refusal);
    const { bytes, type } = bodyOf(options.body);
    const given = Object.entries(options.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]);
    const event = httpEvent(match.target, 'test', this.#timeoutMs, {
      method,
      path,
      query,
      headers: { ...type, ...Object.fromEntries(given) },
      remoteAddr: '127.0.0.1',
      params: match.params,
      auth: authOf(options),
      hostBearer: NO_BEARER,
    });
    const outcome = await this.#run('http', event, bytes, options);
    // Of an execution that failed the service answers in the place of the plugin.
    const isOk = outcome.kind === 'ok';
    const body = Buffer.from(isOk ? outcome.body : '');
    const status = (isOk && outcome.status) || (STATUS[outcome.kind] ?? 502);
    const text = body.toString();
    const answer = { ...endedOf(outcome), status, headers: isOk ? headersOf(outcome.headers) : {}, text, bytes: body };
    return withJson(answer, 'json', text);
  }

  /** Sends a command, like `/menu tomorrow`. @returns what the plugin replied */
  async message(text: string, options: CallOptions & { files?: readonly string[] } = {}) {
    assertOptions('message', options);
    const [, name = '', rest = ''] = /^\/(\S+)\s*(.*)$/s.exec(text) ?? [];
    if (!this.manifest.triggers.some(t => t.type === 'messenger' && t.name === name))
      throw new Error(`the plugin has no command "/${name}"`);
    const files = (options.files ?? []).map(id => {
      const { bytes = new Uint8Array(), ...file } = this.#host.files.get(id) ?? {};
      return { ...file, id, size: bytes.length };
    });
    const message = {
      channel: 'TELEGRAM',
      chat_id: '1',
      user_id: options.user === undefined ? null : userId(options.user),
      text,
      args: rest.split(/\s+/).filter(word => word !== ''),
      files,
    };
    const event = { kind: 'messenger', trigger: name, request_id: 'test', deadline_ms: this.#timeoutMs, message };
    const replies: unknown[] = [];
    const outcome = await this.#run('messenger', JSON.stringify(event), null, options, replies);
    // What a command that failed has replied is sent to no one.
    return { ...endedOf(outcome), replies: outcome.kind === 'ok' ? replies : [] };
  }

  /** Calls a function as another plugin would. @param from id of that plugin */
  async call(name: string, value: unknown = null, options: CallOptions & { from?: string } = {}) {
    assertOptions('call', options);
    const call = { from: options.from ?? 'test', function: name, auth: authOf(options) };
    const event = { kind: 'call', trigger: name, request_id: 'test', deadline_ms: this.#timeoutMs, call };
    const bytes = value instanceof Uint8Array ? value : Buffer.from(textWithBigints(value));
    const outcome = await this.#run('call', JSON.stringify(event), bytes, options);
    const output = Buffer.from(outcome.kind === 'ok' ? outcome.output : '');
    return withJson({ ...endedOf(outcome), bytes: output }, 'value', output.toString());
  }

  async #run(
    kind: Caller['kind'],
    event: string,
    body: Uint8Array | null,
    options: CallOptions,
    replies: unknown[] = [],
  ): Promise<ExecutionOutcome> {
    const { grant, kv, user } = options;
    for (const [key, value] of Object.entries(kv ?? {})) this.#host.kv.set(key, Buffer.from(value), 0);
    const permissions = new Set(grant ?? permissionsOf(this.manifest));
    const caller = { kind, user: user === undefined ? null : userId(user), permissions, replies };
    this.#lockstep.begin();
    return await this.#sandbox
      .run({ event, body, entry: ENTRIES[kind], context: caller })
      .finally(() => this.#lockstep.end());
  }

  /** Ends the threads. A test ends without it, too. */
  async close(): Promise<void> {
    await this.#sandbox.close();
  }
}

/** Modules this process has built, by folder: the sources do not change while tests run. */
const built = new Map<string, Promise<Uint8Array>>();

async function build(folder: string): Promise<Uint8Array> {
  const { module } = await buildProject(readProject(folder));
  await endBuilds();
  return module;
}

/** Builds the plugin of a folder, once, and puts it into a sandbox of its own. */
export async function testHost(options: HostOptions = {}): Promise<TestHost> {
  const folder = path.resolve(options.folder ?? '.');
  const module = built.get(folder) ?? build(folder);
  built.set(folder, module);
  return new TestHost(await module, options);
}
