import { HOST_FUNCTIONS, type HostFunction, type Parameter } from '../../../src/abi/host-functions.ts';

/**
 * Writes the glue between QuickJS and the host in AssemblyScript: each host function becomes a function of JavaScript.
 * The glue has no data and no allocator; everything lies in the memory of QuickJS.
 */

/** What JavaScript gets besides the host functions, in the order of their numbers. */
export const SPECIAL_FUNCTIONS = [
  'entries',
  'input_text',
  'input_bytes',
  'result_text',
  'result_bytes',
  'body_text',
  'body_bytes',
  'error_text',
  'utf8_bytes',
  'utf8_text',
  'random',
  'random_bytes',
  'sleep',
  'positions',
  'deadline',
] as const;

/** They copy into memory of the guest, which the functions above do for JavaScript. */
const COPIERS = ['input_len', 'input_read', 'result_read', 'body_len', 'body_read', 'error_len', 'error_read'];

/** Reads a file without a limit of its own; `file_read_into` replaces it. */
const DEPRECATED = ['file_read'];

/** The host functions that JavaScript can call. */
export const BRIDGED: readonly HostFunction[] = HOST_FUNCTIONS.filter(
  f => !COPIERS.includes(f.name) && !DEPRECATED.includes(f.name),
);

/** Number of the first host function: the name of a function is one character, which says what it does. */
const FIRST = 48;

/** The character that stands for a function of JavaScript in a call to the host. */
export const numberOf = (name: string): number =>
  FIRST + [...SPECIAL_FUNCTIONS, ...BRIDGED.map(f => f.name)].indexOf(name);

const QUICKJS = `
@external("qjs", "wasm_malloc") declare function malloc(length: i32): i32;
@external("qjs", "wasm_free") declare function free(at: i32): void;
@external("qjs", "_initialize") declare function constructors(): void;
@external("qjs", "qjs_init") declare function initialize(): i32;
@external("qjs", "qjs_set_gc_threshold") declare function setCollectionThreshold(bytes: i32): void;
@external("qjs", "qjs_set_max_stack_size") declare function limitStack(bytes: i32): void;
@external("qjs", "qjs_set_promise_rejection_handler") declare function trackRejections(on: i32): void;
@external("qjs", "qjs_set_interrupt_handler") declare function watchTime(on: i32): void;
@external("qjs", "qjs_eval") declare function evaluate(code: i32, length: i32, name: i32, flags: i32): i32;
@external("qjs", "qjs_new_host_function") declare function newFunction(name: i32, length: i32, parameters: i32): i32;
@external("qjs", "qjs_new_object") declare function newObject(): i32;
@external("qjs", "qjs_get_global") declare function globalObject(): i32;
@external("qjs", "qjs_set_prop_string") declare function setProperty(object: i32, name: i32, value: i32): i32;
@external("qjs", "qjs_dup_value") declare function duplicate(value: i32): i32;
@external("qjs", "qjs_free_value") declare function freeValue(value: i32): void;
@external("qjs", "qjs_call") declare function call(callee: i32, self: i32, count: i32, values: i32): i32;
@external("qjs", "qjs_get_undefined") declare function undefinedValue(): i32;
@external("qjs", "qjs_get_true") declare function trueValue(): i32;
@external("qjs", "qjs_get_false") declare function falseValue(): i32;
@external("qjs", "qjs_is_exception") declare function isException(value: i32): i32;
@external("qjs", "qjs_get_exception") declare function takeException(): i32;
@external("qjs", "qjs_is_string") declare function isString(value: i32): i32;
@external("qjs", "qjs_get_string_len") declare function stringOf(value: i32, length: i32): i32;
@external("qjs", "qjs_free_cstring") declare function freeString(at: i32): void;
@external("qjs", "qjs_new_string") declare function newString(at: i32, length: i32): i32;
@external("qjs", "qjs_new_number") declare function newNumber(value: f64): i32;
@external("qjs", "qjs_get_float64") declare function numberOf(value: i32): f64;
@external("qjs", "qjs_get_big_int64") declare function splitInteger(value: i32, low: i32, high: i32): i32;
@external("qjs", "qjs_new_uint8_array") declare function newBytes(at: i32, length: i32): i32;
@external("qjs", "qjs_get_typed_array_buffer") declare function bufferOf(value: i32, offset: i32, length: i32, unit: i32): i32;
@external("qjs", "qjs_get_array_buffer") declare function addressOf(buffer: i32, length: i32): i32;
@external("qjs", "qjs_is_job_pending") declare function hasJobs(): i32;
@external("qjs", "qjs_execute_pending_job") declare function runJob(): i32;
@external("wasi_snapshot_preview1", "running") declare function startClock(): void;
@external("text", "read_code") declare function readCode(to: i32, from: i32, length: i32): void;
@external("text", "read_positions") declare function readPositions(to: i32, from: i32, length: i32): void;
@external("wasi_snapshot_preview1", "random_get") declare function randomGet(to: i32, length: i32): i32;
@external("wasi_snapshot_preview1", "poll_oneoff") declare function poll(from: i32, to: i32, count: i32, done: i32): i32;
@external("wasi_snapshot_preview1", "clock_time_get") declare function clock(id: i32, precision: i64, to: i32): i32;
@external("bridge", "input_len") declare function inputLength(kind: i32): i32;
@external("bridge", "input_read") declare function readInput(kind: i32, to: i32, length: i32): i32;
@external("bridge", "result_read") declare function readResult(to: i32, length: i32): i32;
@external("bridge", "body_len") declare function bodyLength(): i32;
@external("bridge", "body_read") declare function readBody(from: i32, to: i32, length: i32): i32;
@external("bridge", "error_len") declare function errorLength(): i32;
@external("bridge", "error_read") declare function readError(to: i32, length: i32): i32;
`;

const MACHINE = `
/** 80 bytes for what is passed by address; the values of a call; pairs of address and length of its arguments. */
let scratch: i32 = 0;
let values: i32 = 0;
let onEvent: i32 = 0;
let onIdle: i32 = 0;
let onDescribe: i32 = 0;
let onRejection: i32 = 0;
let onInterrupt: i32 = 0;
/** Nanoseconds an execution may take, 0 without a limit; when it was first asked; whether it has used them up. */
let limit: i64 = 0;
let since: i64 = 0;
let interrupted: bool = false;
const MONOTONIC: i32 = 1;
/** What is left to name the place, and to answer; a quarter of a short limit. */
const MARGIN: i64 = 250 * 1000000;
const DEADLINE_PASSED: i32 = -6;
/** A collection of cycles takes a millisecond, and an execution ends soon. */
const COLLECTION_THRESHOLD: i32 = 64 * 1024 * 1024;
/** Three quarters of the engine's stack of 1 MiB: a recursion without end becomes an exception, not a trap. */
const STACK_MAX: i32 = 768 * 1024;

@inline function argument(k: i32): i32 {
  return load<i32>(values + (k << 2));
}
@inline function integer(k: i32): i32 {
  return <i32>numberOf(argument(k));
}
@inline function flag(on: bool): i32 {
  return on ? trueValue() : falseValue();
}
function long(k: i32): i64 {
  splitInteger(argument(k), scratch, scratch + 4);
  return load<i64>(scratch);
}

/** Address and length of the UTF-8 text of a string, and of the bytes of a typed array; in \`scratch\` from \`at\` on. */
function open(k: i32, at: i32): i32 {
  const value = argument(k);
  if (isString(value)) {
    store<i32>(scratch + at, stringOf(value, scratch + at + 4));
    return 1;
  }
  const buffer = bufferOf(value, scratch + 48, scratch + at + 4, scratch + 56);
  if (isException(buffer)) {
    freeValue(takeException());
    store<i64>(scratch + at, 0);
    return 0;
  }
  store<i32>(scratch + at, addressOf(buffer, scratch + 52) + load<i32>(scratch + 48));
  freeValue(buffer);
  return 0;
}
@inline function close(at: i32, isText: i32): void {
  if (isText) freeString(load<i32>(scratch + at));
}
@inline function from(at: i32): i32 {
  return load<i32>(scratch + at);
}
@inline function count(at: i32): i32 {
  return load<i32>(scratch + at + 4);
}

/** Text or bytes that were copied to an address, which is freed. */
function take(at: i32, length: i32, asText: bool): i32 {
  const made = asText ? newString(at, length) : newBytes(at, length);
  free(at);
  return made;
}

/** The last resort: an error of the kit itself. */
function report(exception: i32): void {
  const text = stringOf(exception, scratch);
  fail(text, load<i32>(scratch));
  freeString(text);
  freeValue(exception);
}

/** An exception that no handler has caught; one for the deadline tells the place. @returns the result of the entry */
function uncaught(exception: i32): i32 {
  if (!interrupted || onInterrupt == 0) {
    report(exception);
    return -7;
  }
  store<i32>(scratch + 64, exception);
  const told = call(onInterrupt, undefinedValue(), 1, scratch + 64);
  if (isException(told)) report(takeException());
  else freeValue(told);
  freeValue(exception);
  return DEADLINE_PASSED;
}

function runJobs(): i32 {
  while (hasJobs())
    if (runJob() < 0) {
      const code = uncaught(takeException());
      if (interrupted) return code;
    }
  return 0;
}

function define(object: i32, id: i32): void {
  store<u8>(scratch, <u8>id);
  store<u8>(scratch + 1, 0);
  const made = newFunction(scratch, 1, 0);
  setProperty(object, scratch, made);
}

export function boot(): void {
  constructors();
  if (initialize() != 0) unreachable();
  startClock();
  setCollectionThreshold(COLLECTION_THRESHOLD);
  limitStack(STACK_MAX);
  trackRejections(1);
  scratch = malloc(80);
  watchTime(1);
  const host = newObject();
  for (let id = FIRST; id < END; id++) define(host, id);
  const global = globalObject();
  store<i64>(scratch, 0x0074736f685f5f); // "__host"
  setProperty(global, scratch, host);
  freeValue(global);
  readCode(scratch, 0, 4);
  const length = load<i32>(scratch);
  const code = malloc(length + 1);
  readCode(code, 4, length);
  store<u8>(code + length, 0);
  store<i64>(scratch + 16, 0x6a2e6e6967756c70); // "plugin.j"
  store<i32>(scratch + 24, 0x73); // "s"
  const result = evaluate(code, length, scratch + 16, 0);
  free(code);
  if (isException(result)) {
    uncaught(takeException());
    unreachable();
  }
  freeValue(result);
  runJobs();
  if (onEvent == 0) unreachable();
}

/** Calls an entry, then what it left to do, until nothing is left. */
function enter(entry: i32): i32 {
  const begun = call(entry, undefinedValue(), 0, 0);
  if (isException(begun)) return uncaught(takeException());
  freeValue(begun);
  while (true) {
    const jobs = runJobs();
    if (jobs < 0) return jobs;
    const next = call(onIdle, undefinedValue(), 0, 0);
    if (isException(next)) return uncaught(takeException());
    const code = <i32>numberOf(next);
    freeValue(next);
    if (code <= 0) return code;
  }
}

export function plugin_handle(): i32 {
  return enter(onEvent);
}
export function plugin_describe(): i32 {
  return enter(onDescribe);
}

/** Waits for a time of the monotonic clock to pass. */
function sleep(milliseconds: f64): void {
  const order = malloc(96);
  memory.fill(order, 0, 96);
  store<i32>(order + 16, 1);
  store<i64>(order + 24, <i64>(milliseconds * 1000000.0));
  poll(order, order + 48, 1, order + 88);
  free(order);
}

function now(): i64 {
  clock(MONOTONIC, 0, scratch + 72);
  return load<i64>(scratch + 72);
}

function copyPositions(): i32 {
  readPositions(scratch, 0, 4);
  const length = load<i32>(scratch);
  const at = malloc(length + 1);
  readPositions(at, 4, length);
  return take(at, length, true);
}

function special(id: i32): i32 {
  switch (id) {
    case 0:
      onEvent = duplicate(argument(0));
      onIdle = duplicate(argument(1));
      onDescribe = duplicate(argument(2));
      onRejection = duplicate(argument(3));
      onInterrupt = duplicate(argument(4));
      return undefinedValue();
    case 1:
    case 2: {
      const length = inputLength(integer(0));
      if (length < 0) return undefinedValue();
      const at = malloc(length + 1);
      readInput(integer(0), at, length);
      return take(at, length, id == 1);
    }
    case 3:
    case 4: {
      const length = integer(0);
      const at = malloc(length + 1);
      readResult(at, length);
      return take(at, length, id == 3);
    }
    case 5:
    case 6: {
      const length = bodyLength();
      const at = malloc(length + 1);
      readBody(0, at, length);
      return take(at, length, id == 5);
    }
    case 7: {
      const length = errorLength();
      const at = malloc(length + 1);
      readError(at, length);
      return take(at, length, true);
    }
    case 8: {
      const text = stringOf(argument(0), scratch);
      const made = newBytes(text, load<i32>(scratch));
      freeString(text);
      return made;
    }
    case 9:
      open(0, 0);
      return newString(from(0), count(0));
    case 10:
      randomGet(scratch, 8);
      return newNumber(<f64>(load<u64>(scratch) >> 11) * 1.1102230246251565e-16);
    case 11:
      open(0, 0);
      randomGet(from(0), count(0));
      return undefinedValue();
    case 12:
      sleep(numberOf(argument(0)));
      return undefinedValue();
    case 13:
      return copyPositions();
    case 14:
      limit = <i64>(numberOf(argument(0)) * 1000000.0);
      limit -= min(MARGIN, limit / 4);
      since = now();
      return undefinedValue();
    default:
      return undefinedValue();
  }
}

/** Called by QuickJS for each of the functions. */
export function host_call(name: i32, _nameLength: i32, _self: i32, _count: i32, given: i32): i32 {
  values = given;
  const id = <i32>load<u8>(name);
  if (id < FIRST_BRIDGE) return special(id - FIRST);
  return newNumber(<f64>bridged(id));
}
/** Asked every ten thousand steps. */
export function host_interrupt(): i32 {
  if (limit == 0) return 0;
  if (now() - since < limit) return 0;
  // What names the place must run.
  limit = 0;
  interrupted = true;
  return 1;
}
export function host_promise_rejection(promise: i32, reason: i32, handled: i32): void {
  const at = malloc(12);
  store<i32>(at, promise);
  store<i32>(at + 4, reason);
  store<i32>(at + 8, flag(handled != 0));
  if (onRejection != 0) {
    const result = call(onRejection, undefinedValue(), 3, at);
    if (isException(result)) report(takeException());
    else freeValue(result);
  }
  free(at);
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
`;

/** How a parameter is read from the arguments of JavaScript, and passed on. */
function passed(parameter: Parameter, k: number, slot: number): { before: string; pass: string; after: string } {
  if (parameter === 'i32') return { before: '', pass: `integer(${k})`, after: '' };
  if (parameter === 'i64') return { before: `const long${k} = long(${k});`, pass: `long${k}`, after: '' };
  return {
    before: `const is${k} = open(${k}, ${slot});`,
    pass: `from(${slot}), count(${slot})`,
    after: `close(${slot}, is${k});`,
  };
}

/** The case of one host function. */
function bridge(row: HostFunction): string {
  let slot = 8;
  const parts = row.parameters.map((p, k) => {
    const part = passed(p, k, slot);
    if (p !== 'i32' && p !== 'i64') slot += 8;
    return part;
  });
  const lines = [
    // Arguments of 64 bits pass through the scratch memory, so they are read first.
    ...parts.map(p => p.before).sort((a, b) => Number(b.includes('long(')) - Number(a.includes('long('))),
    `const code = ${row.name}(${parts.map(p => p.pass).join(', ')});`,
    ...parts.map(p => p.after),
    'return code;',
  ];
  return `    case ${numberOf(row.name)}: {\n${lines
    .filter(line => line !== '')
    .map(line => `      ${line}\n`)
    .join('')}    }\n`;
}

function declaration(row: HostFunction): string {
  const parameters = row.parameters.map((p, k) =>
    p === 'i32' || p === 'i64' ? `a${k}: ${p}` : `a${k}: i32, n${k}: i32`,
  );
  return `@external("bridge", "${row.name}") declare function ${row.name}(${parameters.join(', ')}): i32;\n`;
}

/** @returns the source of the glue in AssemblyScript */
export function glueSource(): string {
  const end = FIRST + SPECIAL_FUNCTIONS.length + BRIDGED.length;
  const constants = { FIRST, FIRST_BRIDGE: FIRST + SPECIAL_FUNCTIONS.length, END: end };
  return [
    QUICKJS,
    ...BRIDGED.map(declaration),
    ...Object.entries(constants).map(([name, value]) => `const ${name}: i32 = ${value};\n`),
    MACHINE,
    `function bridged(id: i32): i32 {\n  switch (id) {\n${BRIDGED.map(bridge).join('')}    default:\n      return -3;\n  }\n}\n`,
  ].join('');
}
