import { HOST_ERROR, HOST_FUNCTIONS, type HostFunction } from '../abi/host-functions.ts';
import { type HostArgument, type HostResult, hostError } from '../abi/host-result.ts';
import type { InstalledPlugin } from '../plugins/registry.ts';

/** Who calls a host function. No plugin: a module that is only asked for its manifest, with every permission denied. */
export type HostCall = { plugin: InstalledPlugin | null; requestId: string; trigger: string };

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

  bytes(k: number): Uint8Array {
    const v = this.#values[k];
    if (!(v instanceof Uint8Array)) throw new TypeError(`argument ${k} is not bytes`);
    return v;
  }
}

/** A call whose permission has been checked. */
export type PermittedCall = HostCall & { plugin: InstalledPlugin };

export type HostHandler = (call: PermittedCall, args: HostArguments) => HostResult | Promise<HostResult>;

/** Whether a plugin holds the permission of a row; `plugins:call` is refined by its target, the first argument. */
function permitted(plugin: InstalledPlugin, row: HostFunction, args: HostArguments): boolean {
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
    const { plugin } = call;
    if (plugin === null || !permitted(plugin, row, args)) return hostError(HOST_ERROR.denied);
    const handler = byRow.get(row);
    return handler === undefined
      ? hostError(HOST_ERROR.unavailable, `${row.name} is not available on this host`)
      : handler({ ...call, plugin }, args);
  };
}
