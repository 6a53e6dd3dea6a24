/**
 * Memories a rewritten module imports. No uploaded module can name them, because the gate checks its imports first.
 *
 *   $host.mem   memory 0: the guest's memory; the host makes it, so that it is capped and can be reused
 *   $host.ctl   memory 1: no guest instruction can name it; only functions that the gate added and the host write it
 */
export const HOST_MODULE = '$host';
export const GUEST_MEMORY = 'mem';
export const CONTROL_MEMORY = 'ctl';

/**
 * Words of the control memory. `entered`: 1 once the start function and `_initialize` have returned; `code`: the result
 * of the entry; `pages`: the size of the guest's memory as the guest knows it. The memory itself may be larger, so that
 * it can be used again by an execution that starts smaller.
 */
export const CONTROL = { entered: 0, code: 1, pages: 2 } as const;

/** Where the module that runs only the start leaves the values of its mutable globals, in 16 bytes each. */
export const GLOBAL_VALUES_AT = 64;
export const GLOBAL_VALUE_BYTES = 16;

/** Exports of the module that runs only the start. */
export const START_EXPORT = 'start';
export const TABLE_EXPORT = 'table';
