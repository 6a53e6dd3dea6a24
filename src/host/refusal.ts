import type { HostErrorCode } from '../abi/host-functions.ts';

/** A refusal of a host call, thrown: the error code of docs/abi.md and its text. */
export class Refusal extends Error {
  readonly code: HostErrorCode;

  constructor(code: HostErrorCode, text: string) {
    super(text);
    this.code = code;
  }
}
