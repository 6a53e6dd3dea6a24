import type { HostErrorCode } from './host-functions.ts';

/** An argument of a host call as its handler gets it: text already decoded, bytes copied out of shared memory. */
export type HostArgument = number | bigint | string | Uint8Array;

/**
 * The answer of a handler: a value or an error code, bytes kept for `result_read`, and a raw part after them.
 * `handedOver`: the data is in a separate buffer, which the host does not use again.
 */
export type HostResult = {
  code: number;
  data?: Uint8Array | string;
  body?: Uint8Array;
  handedOver?: Uint8Array<ArrayBuffer>;
};

/** An error answer with a text for `error_read`. */
export function hostError(code: HostErrorCode, text?: string): HostResult {
  return text === undefined ? { code } : { code, data: text };
}
