/**
 * Memories a rewritten module imports. No uploaded module can name them, because the gate checks its imports first.
 *
 *   $host.mem   memory 0: the guest's memory; the host makes it, so that it is capped and can be reused
 *   $host.ctl   memory 1: one page that no guest instruction can name; only the module's start function writes it
 */
export const HOST_MODULE = '$host';
export const GUEST_MEMORY = 'mem';
export const CONTROL_MEMORY = 'ctl';

/**
 * Words of the control memory. `entered`: 1 once the start function and `_initialize` have returned; `code`: the result
 * of the entry.
 */
export const CONTROL = { entered: 0, code: 1 } as const;
