// The glue between QuickJS and the host, in AssemblyScript: the host functions become functions of JavaScript. It has no
// data and no allocator; everything lies in the memory of QuickJS.
@external("qjs", "wasm_malloc") declare function malloc(length: i32): i32;
@external("qjs", "wasm_free") declare function free(at: i32): void;
@external("qjs", "_initialize") declare function constructors(): void;
@external("qjs", "qjs_init") declare function initialize(): i32;
@external("qjs", "qjs_eval") declare function evaluate(code: i32, length: i32, name: i32, flags: i32): i32;
@external("qjs", "qjs_new_host_function") declare function newFunction(name: i32, length: i32, parameters: i32): i32;
@external("qjs", "qjs_get_global") declare function globalObject(): i32;
@external("qjs", "qjs_set_prop_string") declare function setProperty(object: i32, name: i32, value: i32): i32;
@external("qjs", "qjs_dup_value") declare function duplicate(value: i32): i32;
@external("qjs", "qjs_free_value") declare function freeValue(value: i32): void;
@external("qjs", "qjs_call") declare function call(callee: i32, self: i32, count: i32, values: i32): i32;
@external("qjs", "qjs_get_undefined") declare function undefinedValue(): i32;
@external("qjs", "qjs_is_exception") declare function isException(value: i32): i32;
@external("qjs", "qjs_get_exception") declare function takeException(): i32;
@external("qjs", "qjs_get_string_len") declare function stringOf(value: i32, length: i32): i32;
@external("qjs", "qjs_free_cstring") declare function freeString(at: i32): void;
@external("qjs", "qjs_new_string") declare function newString(at: i32, length: i32): i32;
@external("qjs", "qjs_new_number") declare function newNumber(value: f64): i32;
@external("qjs", "qjs_get_float64") declare function numberOf(value: i32): f64;
@external("qjs", "qjs_is_job_pending") declare function hasJobs(): i32;
@external("qjs", "qjs_execute_pending_job") declare function runJob(): i32;
@external("bundle", "length") declare function bundleLength(): i32;
@external("bundle", "copy") declare function copyBundle(to: i32): void;
@external("wasi_snapshot_preview1", "random_get") declare function randomGet(to: i32, length: i32): i32;
@external("plugin_host", "input_len") declare function inputLength(kind: i32): i32;
@external("plugin_host", "input_read") declare function readInput(kind: i32, to: i32, length: i32): i32;
@external("plugin_host", "result_read") declare function readResult(to: i32, length: i32): i32;
@external("plugin_host", "respond") declare function respond(status: i32, headers: i32, headersLength: i32, body: i32, length: i32): i32;
@external("plugin_host", "fail") declare function fail(text: i32, length: i32): i32;
@external("plugin_host", "kv_get") declare function kvGet(key: i32, length: i32): i32;
@external("plugin_host", "kv_set") declare function kvSet(key: i32, length: i32, value: i32, valueLength: i32, ttlSeconds: i32): i32;

/** 64 bytes for what is passed by address. */
let scratch: i32 = 0;
let handler: i32 = 0;
let failed: bool = false;

/** Names of the functions JavaScript gets, one letter each after two underscores. */
const HANDLE: i32 = 104; // h
const INPUT: i32 = 105; // i
const RANDOM: i32 = 110; // n
const RESPOND: i32 = 114; // r
const KV_GET: i32 = 103; // g
const KV_SET: i32 = 115; // s

function define(global: i32, letter: i32): void {
  store<u8>(scratch, <u8>letter);
  store<u8>(scratch + 1, 0);
  const made = newFunction(scratch, 1, 0);
  store<i32>(scratch, 0x5f5f | (letter << 16));
  setProperty(global, scratch, made);
}

function report(exception: i32): void {
  failed = true;
  const text = stringOf(exception, scratch);
  fail(text, load<i32>(scratch));
  freeString(text);
  freeValue(exception);
}

function runJobs(): void {
  while (hasJobs()) if (runJob() < 0) report(takeException());
}

export function boot(): void {
  constructors();
  if (initialize() != 0) unreachable();
  scratch = malloc(64);
  const global = globalObject();
  define(global, HANDLE);
  define(global, INPUT);
  define(global, RANDOM);
  define(global, RESPOND);
  define(global, KV_GET);
  define(global, KV_SET);
  freeValue(global);
  const length = bundleLength();
  const code = malloc(length + 1);
  copyBundle(code);
  store<u8>(code + length, 0);
  store<i64>(scratch + 40, 0x006e6967756c70); // "plugin"
  const result = evaluate(code, length, scratch + 40, 0);
  free(code);
  if (isException(result) || handler == 0) unreachable();
  freeValue(result);
  runJobs();
  // Run once with nothing, so that the shapes and atoms the handler needs exist already.
  plugin_handle();
  if (failed) unreachable();
}

export function plugin_handle(): i32 {
  failed = false;
  const result = call(handler, undefinedValue(), 0, 0);
  if (isException(result)) report(takeException());
  else freeValue(result);
  runJobs();
  return failed ? -7 : 0;
}

/** What the host parked, as a string, or its error code as a number. */
function parked(length: i32): i32 {
  if (length < 0) return newNumber(<f64>length);
  const at = malloc(length + 1);
  readResult(at, length);
  const made = newString(at, length);
  free(at);
  return made;
}

/** Called by QuickJS for each of the functions. */
export function host_call(name: i32, _nameLength: i32, _self: i32, _count: i32, values: i32): i32 {
  const first = load<i32>(values);
  const second = load<i32>(values + 4);
  const third = load<i32>(values + 8);
  switch (<i32>load<u8>(name)) {
    case HANDLE:
      handler = duplicate(first);
      return undefinedValue();
    case INPUT: {
      const length = inputLength(0);
      if (length < 0) return undefinedValue();
      const at = malloc(length + 1);
      readInput(0, at, length);
      const made = newString(at, length);
      free(at);
      return made;
    }
    case RANDOM:
      randomGet(scratch + 40, 8);
      return newNumber(<f64>(load<u64>(scratch + 40) >> 11) * 1.1102230246251565e-16);
    case RESPOND: {
      const headers = stringOf(second, scratch);
      const headersLength = load<i32>(scratch);
      const body = stringOf(third, scratch);
      const code = respond(<i32>numberOf(first), headers, headersLength, body, load<i32>(scratch));
      freeString(headers);
      freeString(body);
      return newNumber(<f64>code);
    }
    case KV_GET: {
      const key = stringOf(first, scratch);
      const length = kvGet(key, load<i32>(scratch));
      freeString(key);
      return parked(length);
    }
    case KV_SET: {
      const key = stringOf(first, scratch);
      const keyLength = load<i32>(scratch);
      const text = stringOf(second, scratch);
      const code = kvSet(key, keyLength, text, load<i32>(scratch), 0);
      freeString(key);
      freeString(text);
      return newNumber(<f64>code);
    }
    default:
      return undefinedValue();
  }
}

export function host_interrupt(): i32 {
  return 0;
}
export function host_promise_rejection(promise: i32, reason: i32, handled: i32): void {
  if (!handled) report(duplicate(reason));
  freeValue(promise);
  freeValue(reason);
}
export function host_module_normalize(_base: i32, _name: i32): i32 {
  return 0;
}
export function host_module_load(_name: i32, _attributes: i32): i32 {
  return 0;
}
export function host_get_timezone_offset(_low: i32, _high: i32): i32 {
  return 0;
}
