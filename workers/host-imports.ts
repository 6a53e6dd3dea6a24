import { Buffer } from 'node:buffer';
import {
  ABI_NEWEST,
  HOST_ERROR,
  HOST_ERROR_TEXT,
  HOST_FUNCTIONS,
  type HostErrorCode,
  type HostFunction,
  wasmParametersOf,
} from '../src/abi/host-functions.ts';
import { checkResponseHeaders, withSandbox } from '../src/abi/response-headers.ts';
import { ENTRY } from '../src/abi/shared-layout.ts';
import { LIMITS } from '../src/base/limits.ts';
import type { ExecutionState, Span } from './execution-state.ts';
import type { GuestMemory } from './guest-memory.ts';
import type { HostChannel } from './host-channel.ts';
import { trap } from './trap.ts';
import { type WasmSignature, wasmFunctions } from './wasm-functions.ts';

/** The functions of the table that are answered in the lane. */
const FEATURES = ['kv', 'file', 'sql', 'network', 'notify', 'events', 'plugins:call'];

/**
 * At most eight values; those a function does not take are undefined. A fixed list costs less than a rest parameter.
 */
type Values = [a: number, b: number, c: number, d: number, e: number, f: number, g: number, h: number];
type LocalFunction = (...values: Values) => number;

/** Flat header bytes with a note on dropped headers, or the reason why the response is refused. */
type CachedHeaders = { flat: Uint8Array; sandboxed: Uint8Array; dropped: string } | { refused: string };

/**
 * Caches checked headers by plugin and by the guest's bytes, because most plugins send the same few headers again and
 * again.
 */
class HeaderCache {
  #entries = new Map<string, CachedHeaders>();
  #lastPlugin = '';
  #lastJson = new Uint8Array(0);
  #lastChecked: CachedHeaders | null = null;

  check(pluginId: string, json: Uint8Array, decode: () => string | undefined): CachedHeaders {
    // The same bytes as the last time: no text has to be decoded.
    if (
      this.#lastChecked !== null &&
      pluginId === this.#lastPlugin &&
      json.length === this.#lastJson.length &&
      Buffer.compare(json, this.#lastJson) === 0
    )
      return this.#lastChecked;
    const text = decode();
    if (text === undefined) return { refused: 'the headers are not valid UTF-8' };
    const checked = this.#checkText(pluginId, text);
    if (json.length <= 1024) {
      this.#lastPlugin = pluginId;
      this.#lastJson = json.slice();
      this.#lastChecked = checked;
    }
    return checked;
  }

  #checkText(pluginId: string, text: string): CachedHeaders {
    const key = `${pluginId}\0${text}`;
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const checked = checkResponseHeaders(text, pluginId);
    const value: CachedHeaders = checked.ok
      ? {
          flat: Uint8Array.from(Buffer.from(checked.flat, 'latin1')),
          sandboxed: Uint8Array.from(Buffer.from(withSandbox(checked.flat), 'latin1')),
          dropped: checked.dropped.join(', '),
        }
      : { refused: checked.reason };
    if (this.#entries.size >= 64) this.#entries.clear();
    if (text.length <= 1024) this.#entries.set(key, value);
    return value;
  }
}

/**
 * Makes the functions a guest may import from `plugin_host`; all executions of one lane share them. docs/abi.md
 * describes purpose, parameters and results of each. A bad (pointer, length) pair returns -3, never an exception.
 */
export function makeHostImports(
  state: ExecutionState,
  guest: GuestMemory,
  channel: Pick<HostChannel, 'keepBody' | 'call'>,
): Record<string, WebAssembly.ExportValue> {
  const cache = new HeaderCache();

  const fail = (code: HostErrorCode, text?: string): number => {
    state.error = text ?? HOST_ERROR_TEXT[code];
    return code;
  };
  const badPair = (): number => fail(HOST_ERROR.invalid, 'the pointer and length do not lie inside the memory');
  const copyOut = (source: Uint8Array, pointer: number, length: number): number =>
    guest.holds(pointer, length) ? guest.write(source, pointer, length) : badPair();
  const input = (kind: number): Span | null => (kind === 0 ? state.event : kind === 1 ? state.body : null);

  const local: Record<string, LocalFunction> = {
    input_len(kind) {
      return input(kind)?.length ?? fail(HOST_ERROR.invalid, 'input kind must be 0 (event) or 1 (body)');
    },
    input_read(kind, pointer, length) {
      const source = input(kind);
      if (source === null) return fail(HOST_ERROR.invalid, 'input kind must be 0 (event) or 1 (body)');
      return copyOut(source.view(), pointer, length);
    },
    result_read: (pointer, length) => copyOut(state.parked, pointer, length),
    body_len: () => state.parkedBody.length,
    body_read(offset, pointer, length) {
      const from = offset >>> 0;
      if (from > state.parkedBody.length) return fail(HOST_ERROR.invalid, 'the offset lies beyond the body');
      return copyOut(state.parkedBody.subarray(from), pointer, length);
    },
    error_len: () => Buffer.byteLength(state.error),
    error_read: (pointer, length) => copyOut(Buffer.from(state.error), pointer, length),
    output(pointer, length) {
      if (!guest.holds(pointer, length)) return badPair();
      if (length >>> 0 > LIMITS.responseBodyBytesMax) return fail(HOST_ERROR.tooLarge);
      state.output = guest.range(pointer, length).slice();
      return 0;
    },
    respond(code, ha, hl, ba, bl) {
      const refuse = (code: HostErrorCode, text: string): number => {
        state.invalidResponse = text;
        state.response = null;
        return fail(code, text);
      };
      if (state.entry !== ENTRY.handle) return fail(HOST_ERROR.invalid, 'an answer is for HTTP triggers alone');
      if (!guest.holds(ha, hl) || !guest.holds(ba, bl)) return badPair();
      if (code < 200 || code > 599) return refuse(HOST_ERROR.invalid, `status ${code} is not between 200 and 599`);
      if (hl >>> 0 > LIMITS.responseHeadersJsonBytesMax)
        return refuse(HOST_ERROR.tooLarge, `the headers are larger than ${LIMITS.responseHeadersJsonBytesMax} bytes`);
      if (bl >>> 0 > LIMITS.responseBodyBytesMax)
        return refuse(HOST_ERROR.tooLarge, `the body is larger than ${LIMITS.responseBodyBytesMax} bytes`);
      const checked = cache.check(state.pluginId, guest.range(ha, hl), () => guest.text(ha, hl));
      if ('refused' in checked) return refuse(HOST_ERROR.invalid, checked.refused);
      if (checked.dropped !== '') state.log(2, `response headers were dropped: ${checked.dropped}`);
      state.invalidResponse = null;
      // A 304 is about the answer in the browser's cache, so its own Content-Type does not count.
      const headers = code >= 200 && code < 300 ? checked.flat : checked.sandboxed;
      const body = guest.range(ba, bl);
      state.response = {
        status: code,
        headers,
        body: channel.keepBody(headers, body),
        bodyBytes: body.length,
      };
      return 0;
    },
    fail(pointer, length) {
      if (!guest.holds(pointer, length)) return badPair();
      state.failure = guest.lenientText(pointer, Math.min(length >>> 0, 4096));
      return 0;
    },
    log(level, pointer, length) {
      if (level < 0 || level > 3) return fail(HOST_ERROR.invalid, 'the level must be 0 to 3');
      if (!guest.holds(pointer, length)) return badPair();
      state.log(level, guest.lenientText(pointer, Math.min(length >>> 0, LIMITS.logBytesPerExecution)));
      return 0;
    },
    config_get(pointer, length) {
      if (!guest.holds(pointer, length)) return badPair();
      const key = guest.text(pointer, Math.min(length >>> 0, LIMITS.hostCallTextBytesMax));
      const value = key !== undefined && Object.hasOwn(state.config, key) ? state.config[key] : undefined;
      if (value === undefined) return fail(HOST_ERROR.notFound, `there is no configuration value "${key ?? ''}"`);
      state.parked = Buffer.from(value);
      return state.parked.length;
    },
    host_info() {
      state.parked = Buffer.from(JSON.stringify({ abi: ABI_NEWEST, limits: LIMITS, features: FEATURES }));
      return state.parked.length;
    },
  };

  /** The checks before every call: 0, or the error code of the refusal. */
  const enter = (): number => {
    if (state.ended !== null) trap();
    // Without a text, because a remembered start leaves none.
    if (state.initializing && state.entry !== ENTRY.describe) return HOST_ERROR.denied;
    if (++state.hostCalls > LIMITS.hostCallsMax) {
      state.ended = 'quota';
      state.failure = `more than ${LIMITS.hostCallsMax} host calls in one execution`;
      trap();
    }
    return 0;
  };
  /** Runs after a stack overflow or a bug in a host function; the guest must not catch the error and continue. */
  const broken = (row: HostFunction, error: unknown): never => {
    state.ended ??= 'fault';
    state.failure ??= `host function ${row.name} failed: ${error instanceof Error ? error.message : 'unknown'}`;
    trap();
  };
  const guarded =
    (row: HostFunction, run: LocalFunction): LocalFunction =>
    (a, b, c, d, e, f, g, h) => {
      const refusal = enter();
      if (refusal !== 0) return refusal;
      try {
        const result = run(a, b, c, d, e, f, g, h);
        if (result < 0) state.failedCall = { text: state.error, at: new Error(row.name) };
        if (result === HOST_ERROR.denied) state.noteDenied(row);
        return result;
      } catch (error) {
        // A trap would do, and its stack would take longer to write than the run took.
        if (state.ended === 'asked') throw error;
        return broken(row, error);
      }
    };

  const functions: Record<string, LocalFunction> = {};
  const signatures = new Map<string, WasmSignature>();
  HOST_FUNCTIONS.forEach((row, operation) => {
    const own = local[row.name];
    if (row.local && own === undefined) throw new Error(`host function ${row.name} is local but has no body`);
    functions[row.name] = guarded(row, own ?? ((...values) => channel.call(row, operation, values)));
    signatures.set(row.name, { parameters: wasmParametersOf(row), result: true });
  });
  return wasmFunctions(functions, signatures);
}
