import { HOST_ERROR, HOST_FUNCTIONS, type HostFunction } from '../abi/host-functions.ts';
import { type HostArgument, type HostResult, hostError } from '../abi/host-result.ts';
import type { InstalledPlugin } from '../plugins/registry.ts';

/**
 * The execution that calls host functions. No plugin: a module that is only asked for its manifest, with every permission
 * denied. What a function opens for the time of the execution is closed by what it adds to `atEnd`.
 */
export class HostCall {
  readonly plugin: InstalledPlugin | null;
  readonly requestId: string;
  readonly trigger: string;
  /** What started the execution. */
  readonly kind: 'http' | 'messenger' | 'call';
  /** The user for whom it runs; null for a service key and for nobody. */
  readonly userId: number | null;
  #atEnd: Array<() => void> | null = null;
  #ended = false;

  constructor(
    plugin: InstalledPlugin | null,
    requestId: string,
    trigger: string,
    kind: HostCall['kind'],
    userId: number | null,
  ) {
    this.plugin = plugin;
    this.requestId = requestId;
    this.trigger = trigger;
    this.kind = kind;
    this.userId = userId;
  }

  /** Does something when the execution is over; at once when it is already. */
  atEnd(work: () => void): void {
    if (this.#ended) return work();
    this.#atEnd ??= [];
    this.#atEnd.push(work);
  }

  /** The execution is over, however it ended. */
  end(): void {
    this.#ended = true;
    if (this.#atEnd !== null) for (const work of this.#atEnd) work();
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

  /** An i64; exact up to 2^53, which no length or offset passes. */
  long(k: number): number {
    const v = this.#values[k];
    if (typeof v !== 'bigint') throw new TypeError(`argument ${k} is not an i64`);
    return Number(BigInt.asIntN(64, v));
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
 * Dispatches host calls: checks the permission, then runs the row's handler (service.md 1, 7; abi.md).
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
