import { Buffer } from 'node:buffer';
import {
  ABI_NEWEST,
  HOST_ERROR,
  HOST_ERROR_TEXT,
  HOST_FUNCTIONS,
  type HostErrorCode,
  type HostFunction,
} from '../src/abi/host-functions.ts';
import { checkResponseHeaders } from '../src/abi/response-headers.ts';
import { LIMITS } from '../src/limits.ts';
import type { ExecutionState } from './execution-state.ts';
import type { GuestMemory } from './guest-memory.ts';
import type { HostChannel } from './host-channel.ts';
import { trap } from './trap.ts';

type HostImport = (...args: Array<number | bigint>) => number;

/** All imports here have i32 parameters unless the row says i64; WebAssembly passes exactly these. */
const int = (value: number | bigint | undefined): number => Number(value ?? 0);

/** Checked headers by the guest's bytes: most plugins send the same few again and again. */
class HeaderCache {
  #entries = new Map<string, Uint8Array | string>();
  #lastJson = new Uint8Array(0);
  #lastChecked: Uint8Array | string = new Uint8Array(0);

  /** Flat header bytes, or the reason they are refused. */
  check(json: Uint8Array, decode: () => string | undefined): Uint8Array | string {
    // The same as the time before: no text is made.
    if (json.length === this.#lastJson.length && Buffer.compare(json, this.#lastJson) === 0) return this.#lastChecked;
    const text = decode();
    if (text === undefined) return 'the headers are not valid UTF-8';
    const checked = this.#checkText(text);
    if (json.length <= 1024) {
      this.#lastJson = json.slice();
      this.#lastChecked = checked;
    }
    return checked;
  }

  #checkText(text: string): Uint8Array | string {
    const known = this.#entries.get(text);
    if (known !== undefined) return known;
    const checked = checkResponseHeaders(text);
    const value = checked.ok ? Uint8Array.from(Buffer.from(checked.flat, 'latin1')) : checked.reason;
    if (this.#entries.size >= 64) this.#entries.clear();
    if (text.length <= 1024) this.#entries.set(text, value);
    return value;
  }
}

/**
 * The functions a guest may import from `plugin_host`, shared by all executions of one lane. Purpose, parameters and
 * results of each are in abi.md; a bad (pointer, length) pair is -3, never an exception.
 */
export function makeHostImports(
  state: ExecutionState,
  guest: GuestMemory,
  channel: Pick<HostChannel, 'keepBody' | 'call'>,
): Record<string, HostImport> {
  const headers = new HeaderCache();

  const fail = (code: HostErrorCode, text?: string): number => {
    state.error = text ?? HOST_ERROR_TEXT[code];
    return code;
  };
  const badPair = (): number => fail(HOST_ERROR.invalid, 'the pointer and length do not lie inside the memory');
  const copyOut = (source: Uint8Array, pointer: number, length: number): number =>
    guest.holds(pointer, length) ? guest.write(source, pointer, length) : badPair();
  const input = (kind: number): Uint8Array | null => (kind === 0 ? state.event : kind === 1 ? state.body : null);

  const local: Record<string, HostImport> = {
    input_len(kind) {
      return input(int(kind))?.length ?? fail(HOST_ERROR.invalid, 'input kind must be 0 (event) or 1 (body)');
    },
    input_read(kind, pointer, length) {
      const source = input(int(kind));
      if (source === null) return fail(HOST_ERROR.invalid, 'input kind must be 0 (event) or 1 (body)');
      return copyOut(source, int(pointer), int(length));
    },
    result_read: (pointer, length) => copyOut(state.parked, int(pointer), int(length)),
    body_len: () => state.parkedBody.length,
    body_read(offset, pointer, length) {
      const from = int(offset) >>> 0;
      if (from > state.parkedBody.length) return fail(HOST_ERROR.invalid, 'the offset lies beyond the body');
      return copyOut(state.parkedBody.subarray(from), int(pointer), int(length));
    },
    error_len: () => Buffer.byteLength(state.error),
    error_read: (pointer, length) => copyOut(Buffer.from(state.error), int(pointer), int(length)),
    output(pointer, length) {
      if (!guest.holds(int(pointer), int(length))) return badPair();
      if (int(length) >>> 0 > LIMITS.responseBodyBytesMax) return fail(HOST_ERROR.tooLarge);
      state.output = guest.range(int(pointer), int(length)).slice();
      return 0;
    },
    respond(status, headersAt, headersLength, bodyAt, bodyLength) {
      const refuse = (code: HostErrorCode, text: string): number => {
        state.invalidResponse = text;
        state.response = null;
        return fail(code, text);
      };
      const [code, ha, hl, ba, bl] = [int(status), int(headersAt), int(headersLength), int(bodyAt), int(bodyLength)];
      if (state.entry !== 0) return fail(HOST_ERROR.invalid, 'respond is for HTTP triggers');
      if (!guest.holds(ha, hl) || !guest.holds(ba, bl)) return badPair();
      if (code < 200 || code > 599) return refuse(HOST_ERROR.invalid, `status ${code} is not between 200 and 599`);
      if (hl >>> 0 > LIMITS.responseHeadersJsonBytesMax)
        return refuse(HOST_ERROR.tooLarge, `the headers are larger than ${LIMITS.responseHeadersJsonBytesMax} bytes`);
      if (bl >>> 0 > LIMITS.responseBodyBytesMax)
        return refuse(HOST_ERROR.tooLarge, `the body is larger than ${LIMITS.responseBodyBytesMax} bytes`);
      const checked = headers.check(guest.range(ha, hl), () => guest.text(ha, hl));
      if (typeof checked === 'string') return refuse(HOST_ERROR.invalid, checked);
      state.invalidResponse = null;
      state.response = { status: code, headers: checked, body: channel.keepBody(checked, guest.range(ba, bl)) };
      return 0;
    },
    reply: () => fail(HOST_ERROR.invalid, 'reply is for messenger triggers'),
    fail(pointer, length) {
      if (!guest.holds(int(pointer), int(length))) return badPair();
      state.failure = guest.lenientText(int(pointer), Math.min(int(length) >>> 0, 4096));
      return 0;
    },
    log(level, pointer, length) {
      const l = int(level);
      if (l < 0 || l > 3) return fail(HOST_ERROR.invalid, 'the level must be 0 to 3');
      if (!guest.holds(int(pointer), int(length))) return badPair();
      state.log(l, guest.lenientText(int(pointer), Math.min(int(length) >>> 0, LIMITS.logBytesPerExecution)));
      return 0;
    },
    config_get(pointer, length) {
      if (!guest.holds(int(pointer), int(length))) return badPair();
      const key = guest.text(int(pointer), Math.min(int(length) >>> 0, LIMITS.hostCallTextBytesMax));
      const value = key !== undefined && Object.hasOwn(state.config, key) ? state.config[key] : undefined;
      if (value === undefined) return fail(HOST_ERROR.notFound, `there is no configuration value "${key ?? ''}"`);
      state.parked = Buffer.from(value);
      return state.parked.length;
    },
    host_info() {
      state.parked = Buffer.from(JSON.stringify({ abi: ABI_NEWEST, limits: LIMITS, features: ['kv'] }));
      return state.parked.length;
    },
  };

  const guarded = (row: HostFunction, run: HostImport): HostImport => {
    return (...args) => {
      if (state.ended !== null) trap();
      if (state.initializing && state.entry === 0) return fail(HOST_ERROR.denied);
      if (++state.hostCalls > LIMITS.hostCallsMax) {
        state.ended = 'quota';
        state.failure = `more than ${LIMITS.hostCallsMax} host calls in one execution`;
        trap();
      }
      try {
        return run(...args);
      } catch (error) {
        // Only a stack that ran out or a mistake of ours gets here; the guest must not catch it and run on.
        state.ended ??= 'fault';
        state.failure ??= `host function ${row.name} failed: ${error instanceof Error ? error.message : 'unknown'}`;
        trap();
      }
    };
  };

  const imports: Record<string, HostImport> = {};
  HOST_FUNCTIONS.forEach((row, operation) => {
    const own = local[row.name];
    if (row.local && own === undefined) throw new Error(`host function ${row.name} is local but has no body`);
    imports[row.name] = guarded(row, own ?? ((...args) => channel.call(row, operation, args)));
  });
  return imports;
}
