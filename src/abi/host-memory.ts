/**
 * What a rewritten module imports beside its functions. No uploaded module can name these: imports are checked before.
 *
 *   $host.mem   memory 0: the guest's own, given by the host so that the cap holds and it can be used again
 *   $host.ctl   memory 1: one page that no guest instruction can name; the module's only start function writes it
 */
export const HOST_MODULE = '$host';
export const GUEST_MEMORY = 'mem';
export const CONTROL_MEMORY = 'ctl';

/** Words of the control memory. `entered`: 1 once start function and `_initialize` are behind; `code`: what the entry returned. */
export const CONTROL = { entered: 0, code: 1 } as const;
