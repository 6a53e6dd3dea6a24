import type { HostErrorCode } from '../abi/host-functions.ts';

/** A refusal on the way, as the plugin gets it: the code of docs/abi.md and the text behind it. */
export class Refusal extends Error {
  readonly code: HostErrorCode;

  constructor(code: HostErrorCode, text: string) {
    super(text);
    this.code = code;
  }
}
