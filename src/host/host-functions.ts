import { HOST_ERROR, HOST_FUNCTIONS, type HostFunction } from '../abi/host-functions.ts';
import { type HostArgument, type HostResult, hostError } from '../abi/host-result.ts';
import type { Principal } from '../base/principal.ts';
import type { Span } from '../base/tracing.ts';
import type { Message } from '../messaging/outgoing.ts';
import { callPermission } from '../plugins/manifest.ts';
import type { InstalledPlugin } from '../plugins/registry.ts';
import type { Recording } from '../records/recording.ts';

export type HostCallOrigin = {
  /** Null while a module is only asked for its manifest, without any permission. */
  plugin: InstalledPlugin | null;
  requestId: string;
  /** Trace id of the request; left out or empty without one. */
  traceId?: string;
  /** The span of what started the execution; left out or null without tracing. */
  span?: Span | null;
  trigger: string;
  /** What started the execution. */
  kind: 'http' | 'messenger' | 'call';
  /** The principal it runs for; null without a credential. */
  principal: Principal | null;
  /** The key under which the execution, and the plugins it calls, are counted (`callerKey`). */
  caller: string;
  /** Absolute, in ms of `performance.now()` of the main thread. All work the execution starts shares it. */
  deadline: number;
  /** Ids of the plugins whose calls led to this execution, outermost first. */
  callers: readonly string[];
  /** The messenger message that this execution, or the outermost one that called it, runs for; null for none. */
  message: MessageScope | null;
  /** What the execution is recorded in; left out or null where it is not recorded. */
  recording?: Recording | null;
};

/** The state that executions for one incoming message share. */
export type MessageScope = {
  /** As `CHANNEL:chat`. */
  readonly chat: string;
  /** Key of the message, the same in all attempts to handle it. */
  readonly key: string;
  /** The replies so far; sent when the handler succeeds. */
  readonly replies: Message[];
};

/** How an execution ended: by itself, or because its thread was ended. */
export type CallEnd = 'ended' | 'killed';

/**
 * The execution that calls host functions. A function that opens something for the time of the execution registers with
 * `atEnd` how to close it.
 */
export class HostCall {
  readonly plugin: InstalledPlugin | null;
  readonly requestId: string;
  /** The span of what it does now: of the execution, or of the host call it waits for. Null without tracing. */
  span: Span | null;
  readonly trigger: string;
  readonly kind: HostCallOrigin['kind'];
  readonly principal: Principal | null;
  readonly caller: string;
  readonly deadline: number;
  readonly callers: readonly string[];
  readonly message: MessageScope | null;
  readonly recording: Recording | null;
  readonly #traceId: string;
  #atEnd: Set<(how: CallEnd) => void> | null = null;
  #ended: CallEnd | null = null;

  constructor(origin: HostCallOrigin) {
    this.plugin = origin.plugin;
    this.requestId = origin.requestId;
    this.#traceId = origin.traceId ?? '';
    this.span = origin.span ?? null;
    this.trigger = origin.trigger;
    this.kind = origin.kind;
    this.principal = origin.principal;
    this.caller = origin.caller;
    this.deadline = origin.deadline;
    this.callers = origin.callers;
    this.message = origin.message;
    this.recording = origin.recording ?? null;
  }

  get traceId(): string {
    return this.span?.traceId ?? this.#traceId;
  }

  /** The user it runs for; null for a service key and without a credential. */
  get userId(): number | null {
    return this.principal?.kind === 'user' ? this.principal.userId : null;
  }

  /** Registers work for the end of the execution; runs it at once if the execution has ended. */
  atEnd(work: (how: CallEnd) => void): void {
    if (this.#ended !== null) return work(this.#ended);
    this.#atEnd ??= new Set();
    this.#atEnd.add(work);
  }

  /** Removes registered work. */
  notAtEnd(work: (how: CallEnd) => void): void {
    this.#atEnd?.delete(work);
  }

  /** Ends the execution: runs the registered work. */
  end(how: CallEnd): void {
    this.#ended = how;
    if (this.#atEnd !== null) for (const work of this.#atEnd) work(how);
  }
}

/** Typed access to the arguments of one call. The row declares their types, so a mismatch is a bug of the host. */
export class HostArguments {
  readonly #values: ReadonlyArray<HostArgument>;

  constructor(values: ReadonlyArray<HostArgument>) {
    this.#values = values;
  }

  text(k: number): string {
    const v = this.#values[k];
    if (typeof v !== 'string') throw new TypeError(`argument ${k} is not text`);
    return v;
  }

  int(k: number): number {
    const v = this.#values[k];
    if (typeof v !== 'number') throw new TypeError(`argument ${k} is not an i32`);
    return v;
  }

  /** An i64 with all its bits. */
  int64(k: number): bigint {
    const v = this.#values[k];
    if (typeof v !== 'bigint') throw new TypeError(`argument ${k} is not an i64`);
    return BigInt.asIntN(64, v);
  }

  /** An i64 as a number; exact up to 2^53, and no length or offset is larger. */
  long(k: number): number {
    return Number(this.int64(k));
  }

  bytes(k: number): Uint8Array {
    const v = this.#values[k];
    if (!(v instanceof Uint8Array)) throw new TypeError(`argument ${k} is not bytes`);
    return v;
  }
}

/** A call whose permission has been checked. */
export type PermittedCall = HostCall & { readonly plugin: InstalledPlugin };

export type HostHandler = (call: PermittedCall, args: HostArguments) => HostResult | Promise<HostResult>;

/**
 * Whether the plugin holds the permission of a row. For `plugins:call` the target, the first argument, is part of it.
 */
function isPermitted(call: HostCall, row: HostFunction, args: HostArguments): call is PermittedCall {
  const { plugin } = call;
  if (plugin === null) return false;
  if (row.permission === null) return true;
  if (row.permission === 'plugins:call') return plugin.permissions.has(callPermission(args.text(0)));
  return plugin.permissions.has(row.permission);
}

/**
 * Dispatches host calls: checks the permission, then runs the row's handler (docs/plugins.md "Requirements",
 * docs/abi.md).
 *
 * @param handlers by function name; a row without one answers "unavailable"
 */
export function makeDispatch(handlers: Readonly<Record<string, HostHandler>>) {
  const byRow = new Map<HostFunction, HostHandler>();
  for (const row of HOST_FUNCTIONS) {
    const handler = handlers[row.name];
    if (handler !== undefined) byRow.set(row, handler);
  }
  return (row: HostFunction, values: ReadonlyArray<HostArgument>, call: HostCall): HostResult | Promise<HostResult> => {
    const args = new HostArguments(values);
    if (!isPermitted(call, row, args)) return hostError(HOST_ERROR.denied);
    const handler = byRow.get(row);
    return handler === undefined
      ? hostError(HOST_ERROR.unavailable, `${row.name} is not available on this host`)
      : handler(call, args);
  };
}
