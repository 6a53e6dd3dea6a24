import { HOST_ERROR, HOST_FUNCTIONS, type HostFunction } from '../abi/host-functions.ts';
import { type HostArgument, type HostResult, hostError } from '../abi/host-result.ts';
import type { Message } from '../messaging/outgoing.ts';
import type { InstalledPlugin } from '../plugins/registry.ts';

/** For whom an execution runs (docs/access.md "Principals"). */
export type CallPrincipal =
  | { readonly kind: 'user'; readonly userId: number }
  | { readonly kind: 'service'; readonly keyId: number };

export type HostCallOrigin = {
  /** Null: a module that is only asked for its manifest, with every permission denied. */
  plugin: InstalledPlugin | null;
  requestId: string;
  trigger: string;
  /** What started the execution. */
  kind: 'http' | 'messenger' | 'call';
  /** Null without a credential. */
  principal: CallPrincipal | null;
  /** By whom the execution is counted (`callerKey`), here and in the plugins it calls. */
  caller: string;
  /** Absolute, in ms of `performance.now()` of the main thread; whatever the execution starts shares it. */
  deadline: number;
  /** Ids of the plugins whose calls led here, the first one first. */
  callers: readonly string[];
  /** The message of a messenger it runs for, or that an execution which led here runs for; null for none. */
  message: MessageScope | null;
};

/** What an incoming message brings along for executions. */
export type MessageScope = {
  /** As `CHANNEL:chat`. */
  readonly chat: string;
  /** Names the message over all attempts to handle it. */
  readonly key: string;
  /** What the handler replied so far; sent when it has ended well. */
  readonly replies: Message[];
};

/** How an execution ended: by itself, or its thread was ended under it. */
export type CallEnd = 'ended' | 'killed';

/**
 * The execution that calls host functions. What a function opens for the time of the execution is closed by what it adds to
 * `atEnd`.
 */
export class HostCall {
  readonly plugin: InstalledPlugin | null;
  readonly requestId: string;
  readonly trigger: string;
  readonly kind: HostCallOrigin['kind'];
  readonly principal: CallPrincipal | null;
  readonly caller: string;
  readonly deadline: number;
  readonly callers: readonly string[];
  readonly message: MessageScope | null;
  #atEnd: Set<(how: CallEnd) => void> | null = null;
  #ended: CallEnd | null = null;

  constructor(origin: HostCallOrigin) {
    this.plugin = origin.plugin;
    this.requestId = origin.requestId;
    this.trigger = origin.trigger;
    this.kind = origin.kind;
    this.principal = origin.principal;
    this.caller = origin.caller;
    this.deadline = origin.deadline;
    this.callers = origin.callers;
    this.message = origin.message;
  }

  /** The user for whom it runs; null for a service key and without a credential. */
  get userId(): number | null {
    return this.principal?.kind === 'user' ? this.principal.userId : null;
  }

  /** Does something when the execution is over; at once when it is already. */
  atEnd(work: (how: CallEnd) => void): void {
    if (this.#ended !== null) return work(this.#ended);
    this.#atEnd ??= new Set();
    this.#atEnd.add(work);
  }

  /** There is nothing left to do at the end. */
  notAtEnd(work: (how: CallEnd) => void): void {
    this.#atEnd?.delete(work);
  }

  /** The execution is over. */
  end(how: CallEnd): void {
    this.#ended = how;
    if (this.#atEnd !== null) for (const work of this.#atEnd) work(how);
  }
}

/** Typed access to the arguments of one call; the row says what stands where, so a mismatch is our own mistake. */
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

  /** An i64; exact up to 2^53, which no length or offset passes. */
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

/** Whether the plugin holds the permission of a row; `plugins:call` is refined by its target, the first argument. */
function isPermitted(call: HostCall, row: HostFunction, args: HostArguments): call is PermittedCall {
  const { plugin } = call;
  if (plugin === null) return false;
  if (row.permission === null) return true;
  if (row.permission === 'plugins:call') return plugin.permissions.has(`plugins:call:${args.text(0)}`);
  return plugin.permissions.has(row.permission);
}

/**
 * Dispatches host calls: checks the permission, then runs the row's handler (docs/plugins.md "Requirements", docs/abi.md).
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
