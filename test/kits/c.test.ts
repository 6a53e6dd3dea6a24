import path from 'node:path';
import t, { type Test } from 'tap';
import { buildPlugin, missingTools } from '../../sdk/c/build.ts';
import { withPositions } from '../../sdk/dwarf/with-positions.ts';
import { type HostOptions, TestHost } from '../../src/authors/test-host.ts';
import { inspectModule } from '../../src/plugins/inspect.ts';

/** Plugins in C: what the build says to their author, what a failure shows, and what the kit reads and writes. */

const noC = await missingTools();

async function hostOf(t: Test, module: Uint8Array, options: HostOptions = {}): Promise<TestHost> {
  t.same(
    inspectModule(module).findings.filter(f => f.rule !== 'start'),
    [],
    'an upload has nothing to say',
  );
  const host = new TestHost(module, options);
  t.teardown(() => host.close());
  return host;
}

const plugin = (triggers: string, more = ''): string => `
const ph_plugin plugin = {.id = "small", .name = "Small", .version = "1.0.0", ${more}
  .triggers = PH_TRIGGERS(${triggers})};
`;
const trigger = (name: string): string =>
  `{.name = "${name}", .path = "/${name}", .methods = {"GET", "POST"}, .handler = ${name}}`;

/** A plugin from its sources, in a folder of the test. */
const built = async (t: Test, files: Record<string, string | Record<string, string>>) =>
  await buildPlugin(path.join(t.testdir(files), 'main.c'));

/** Handlers that fail, and what the record says. */
const FAILURES: Record<string, { body: string; outcome: string; failure: RegExp }> = {
  divide: {
    body: 'volatile int zero = 0;\n  return ph_json(200 / zero, NULL);',
    outcome: 'trapped',
    failure: /^divide by zero\n {4}at divide \(main\.c:\d+\)$/,
  },
  inlined: {
    body: 'return ph_json(quotient(200, (int)ph_query(ctx, "none").length), NULL);',
    outcome: 'trapped',
    failure: /^divide by zero\n {4}at quotient \(part\/quotient\.h:3\)\n {4}at inlined \(main\.c:\d+\)$/,
  },
  outside: {
    body: 'volatile int *far = (int *)0x7fffff00;\n  return ph_json(*far, NULL);',
    outcome: 'trapped',
    failure: /^memory access out of bounds\n {4}at outside \(main\.c:\d+\)$/,
  },
  in_library: {
    body: 'strcpy((char *)0x7fffff00, ctx->trigger.data);\n  return PH_OK;',
    outcome: 'trapped',
    failure: /^memory access out of bounds\n {4}at in_library \(main\.c:\d+\)$/,
  },
  too_deep: {
    body: 'return descend(ctx, 1);',
    outcome: 'trapped',
    failure:
      /^(memory access out of bounds: the stack is full, .*|Maximum call stack size exceeded)\n {4}at descend \(main\.c:\d+\)\n/,
  },
  unreachable: {
    body: '__builtin_trap();',
    outcome: 'trapped',
    failure: /^unreachable\n {4}at unreachable \(main\.c:\d+\)$/,
  },
  aborts: { body: 'abort();', outcome: 'trapped', failure: /^unreachable\n {4}at aborts \(main\.c:\d+\)$/ },
  asserts: {
    body: 'assert(ctx->http == NULL);\n  return PH_OK;',
    outcome: 'trapped',
    failure: /^assertion failed: ctx->http == NULL\nunreachable\n {4}at asserts \(main\.c:\d+\)$/,
  },
  panics: {
    body: 'ph_panic(ph_format("no slot %d", 7));',
    outcome: 'trapped',
    failure: /^panic: no slot 7\nunreachable\n {4}at panics \(main\.c:\d+\)$/,
  },
  exits: {
    body: 'exit(3);',
    outcome: 'exited',
    failure: /^the plugin exited with code 3\n {4}at exits \(main\.c:\d+\)$/,
  },
  loops: {
    body: 'volatile int on = 1;\n  while (on) {}\n  return PH_OK;',
    outcome: 'deadline',
    failure: /^the execution was stopped at its deadline, .*\n {4}at loops \(main\.c:\d+\)$/,
  },
  exits_well: { body: 'exit(0);', outcome: 'ok', failure: /^$/ },
  writes_to_nothing: {
    body: 'int *volatile nothing = NULL;\n  *nothing = 7;\n  return PH_OK;',
    outcome: 'trapped',
    failure: /^a pointer is NULL where it is used \(.*\)\nunreachable\n {4}at writes_to_nothing \(main\.c:\d+\)$/,
  },
  reads_a_caller_there_is_not: {
    body: 'return ph_json(200, ph_int(ctx->http->auth->user_id));',
    outcome: 'trapped',
    failure:
      /^a pointer is NULL where it is used \(.*\)\nunreachable\n {4}at reads_a_caller_there_is_not \(main\.c:\d+\)$/,
  },
  leaves_an_array: {
    body: 'volatile int at = 6; int four[4] = {0};\n  four[at] = 1; return four[at] == 1 ? PH_OK : PH_CONFLICT;',
    outcome: 'trapped',
    failure: /^an index is outside its array\nunreachable\n {4}at leaves_an_array \(main\.c:\d+\)$/,
  },
  knows_errno: { body: 'errno = 0;\n  return errno == 0 ? PH_OK : PH_CONFLICT;', outcome: 'ok', failure: /^$/ },
  fails: {
    body: 'return ph_fail("refused: \\"ü\\"");',
    outcome: 'handler_error',
    failure: /^refused: "ü"\n {4}at fails \(main\.c:\d+\)$/,
  },
  returns_refusal: {
    body: 'return ph_kv_set("a", "b", 0);',
    outcome: 'handler_error',
    failure: /^permission denied\n {4}at returns_refusal \(main\.c:\d+\)$/,
  },
  passes_on: {
    body: 'PH_TRY(store(ph_concat("a", "b")));\n  return PH_OK;',
    outcome: 'handler_error',
    failure: /^permission denied\n {4}at store \(part\/store\.c:5\)\n {4}at passes_on \(main\.c:\d+\)$/,
  },
  returns_a_number: { body: 'return (ph_code)5;', outcome: 'handler_error', failure: /^a function returned 5$/ },
  returns_a_code: {
    body: 'return PH_CONFLICT;',
    outcome: 'handler_error',
    failure: /^a function returned -8 \(conflict\)$/,
  },
  reads_no_json: {
    body: 'const ph_value *value;\n  return ph_json_parse("{\\"a\\": 1,}", &value);',
    outcome: 'handler_error',
    failure: /^this is not JSON: byte 8: the name of a member is missing\n {4}at reads_no_json \(main\.c:\d+\)$/,
  },
};

const PARTS = {
  'quotient.h': '#pragma once\n#include <stdint.h>\nstatic inline int quotient(int a, int b) { return a / b; }\n',
  'store.h': '#pragma once\n#include "plugin_host.h"\nph_code store(ph_text key);\n',
  'store.c':
    '#include "store.h"\n\nph_code store(ph_text key) {\n  ph_log(key);\n  PH_TRY(ph_kv_set(key, "", 0));\n  return PH_OK;\n}\n',
};

t.test('a failure names the functions, files and lines of the author', { skip: noC ?? false }, async t => {
  const names = Object.keys(FAILURES);
  const handlers = names.map(
    name => `static ph_code ${name}(const ph_context *ctx) {\n  (void)ctx;\n  ${FAILURES[name]?.body}\n}\n`,
  );
  const source = `#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "plugin_host.h"
#include "part/quotient.h"
#include "part/store.h"

static ph_code descend(const ph_context *ctx, int depth) {
  char buffer[1000];
  memset(buffer, depth, sizeof buffer);
  const ph_code code = descend(ctx, depth + buffer[depth % 1000]);
  return code + (ph_code)buffer[code % 1000];
}
${handlers.join('\n')}
${plugin(names.map(trigger).join(',\n  '), '.requirements = PH_REQUIREMENTS(PH_KV("Nothing")),')}`;
  const { module, warnings } = await built(t, { 'main.c': source, part: PARTS });
  t.same(
    warnings.filter(w => !w.includes('-Winfinite-recursion')),
    [],
  );
  const host = await hostOf(t, module);
  for (const [name, { failure, outcome }] of Object.entries(FAILURES)) {
    const ended = await host.http(`GET /${name}`, { grant: [] });
    t.match(ended, { outcome, failure }, name);
    // The line is that of the handler's own text.
    const [, line = '0'] = new RegExp(`at ${name} \\(main\\.c:(\\d+)\\)`).exec(ended.failure) ?? [];
    if (line === '0') continue;
    const first = source.split('\n').findIndex(l => l.startsWith(`static ph_code ${name}(`)) + 1;
    t.ok(Number(line) > first && Number(line) <= first + 3, `${name}: line ${line} of ${first}`);
  }
});

const handled = (triggers: string): string =>
  `#include "plugin_host.h"\nstatic ph_code go(const ph_context *ctx) { return PH_OK; }\n${plugin(triggers)}`;

/** Sources, and what the build says to them. */
const MISTAKES: Record<string, { files: Record<string, string>; says: RegExp }> = {
  'a name that is not declared': {
    files: { 'main.c': '#include "plugin_host.h"\nint a(void) {\n  return missing;\n}\n' },
    says: /^main\.c:3:10: error: use of undeclared identifier 'missing'$/,
  },
  'mistakes in several files': {
    files: { 'main.c': 'int a(void) { return b(); }\n', 'more.c': 'int c(void) { return "x"; }\n' },
    says: /^main\.c:1:22: error: .*'b'.*\nmore\.c:1:22: error: incompatible pointer to integer conversion[^\n]*$/,
  },
  'a wrong argument of the kit': {
    files: {
      'main.c': `#include "plugin_host.h"
static ph_code go(const ph_context *ctx) {
  return ph_kv_set(ph_param(ctx, "x"), 7, 0);
}
${plugin(trigger('go'))}`,
    },
    says: /^main\.c:3:40: error: controlling expression type 'int' not compatible with any generic association type/,
  },
  'a function that is defined nowhere': {
    files: {
      'main.c': `#include "plugin_host.h"
ph_code lost(const ph_context *ctx);
${plugin('{.name = "a", .path = "/a", .methods = {"GET"}, .handler = lost}')}`,
    },
    says: /^main\.c:2: error: lost is defined neither in the plugin nor in the C library \(wasi-libc\)$/,
  },
  'a function that is defined twice': {
    files: {
      'main.c': `#include "plugin_host.h"\nint twice(void) { return 1; }\n${plugin('{NULL}')}`,
      'more.c': 'int twice(void) { return 2; }\n',
    },
    says: /^error: duplicate symbol: twice\n>>> defined in main\.c\n>>> defined in more\.c$/,
  },
  'what a plugin lacks': {
    files: {
      'main.c': '#include <netdb.h>\n',
      'more.c': '#include <stdio.h>\n#include <signal.h>\nint a(void) { return fork(); }\n',
    },
    says: /^main\.c:1:10: error: there is no <netdb\.h> \(.*: use ph_http_request\)\nmore\.c:2: error: <signal\.h>: .* \(<signal\.h> is of no use in a plugin: a plugin gets no signals\)\nmore\.c:3:22: error: .*'fork'.* \(fork does not work in a plugin: a plugin starts no programs\)$/,
  },
  'a function that a plugin lacks and a header declares': {
    files: {
      'main.c': `#include <time.h>\n#include "plugin_host.h"
static ph_code go(const ph_context *ctx) { return ph_json(200, ph_int(clock())); }
${plugin(trigger('go'))}`,
    },
    says: /^main\.c:3: error: clock does not work in a plugin: use clock_gettime with CLOCK_MONOTONIC$/,
  },
  'a trigger without a name between others': {
    files: {
      'main.c': handled(`${trigger('go')}, {.path = "/b", .methods = {"GET"}, .handler = go}, ${trigger('go')}`),
    },
    says: /trigger 2 of the list has no \.name/,
  },
  'a trigger without a path': {
    files: { 'main.c': handled('{.name = "b", .methods = {"GET"}, .handler = go}') },
    says: /the trigger b has no \.path, like "\/profile" \(.*\); a command needs \.type = PH_TRIGGER_MESSENGER/,
  },
  'no declaration': {
    files: { 'main.c': '#include "plugin_host.h"\n' },
    says: /^error: the plugin declares nothing; write const ph_plugin plugin = \{ \.\.\. \};/,
  },
};

for (const [what, { files, says }] of Object.entries(MISTAKES))
  t.test(`the build names ${what}`, { skip: noC ?? false }, async t => {
    await t.rejects(built(t, files), { message: says });
  });

t.test('a warning of the compiler stops no build', { skip: noC ?? false }, async t => {
  const source = `#include "plugin_host.h"
static ph_code go(const ph_context *ctx) {
  int unused;
  ph_kv_set(ctx->trigger, "", 0);
  return PH_OK;
}
${plugin(trigger('go'), '.requirements = PH_REQUIREMENTS(PH_KV("x")),')}`;
  const { warnings } = await built(t, { 'main.c': source, test: { 'other.c': 'no C' }, kit: { 'old.c': 'no C' } });
  t.match(warnings, [/^main\.c:4:3: ignoring return value of function/, /^main\.c:3:7: unused variable 'unused'/]);
});

t.test('a machine without the tools gets the names of packages', async t => {
  const { PATH } = process.env;
  process.env.PATH = t.testdir({});
  t.teardown(() => {
    process.env.PATH = PATH;
  });
  t.match(await missingTools(), /on Debian: apt-get install clang lld wasi-libc libclang-rt-dev-wasm32$/);
});

t.test('a file that implements the kit itself can be built too', { skip: noC ?? false }, async t => {
  const source = `#define PLUGIN_HOST_IMPLEMENTATION
#include "plugin_host.h"
static ph_code go(const ph_context *ctx) { return ph_json(200, ph_string(ctx->request_id)); }
${plugin(trigger('go'))}`;
  const host = await hostOf(t, (await built(t, { 'main.c': source })).module);
  t.equal((await host.http('GET /go')).json, 'test');
});

const ECHO = `#include <stdio.h>
#include "plugin_host.h"

static ph_code echo(const ph_context *ctx) {
  const ph_value *value;
  PH_TRY(ph_body_json(ctx, &value));
  return ph_json(200, value);
}

static ph_code texts(const ph_context *ctx) {
  const ph_value *body;
  PH_TRY(ph_body_json(ctx, &body));
  const ph_text text = ph_as_text(ph_get(body, "text"));
  int64_t number = 7;
  double real = 0;
  ph_text bytes = ph_bytes("", 0);
  const bool is_int = ph_as_int(ph_get(body, "number"), &number);
  const bool is_real = ph_as_double(ph_get(body, "number"), &real);
  return ph_json(200, ph_object(
    {"length", ph_int((int64_t)text.length)},
    {"again", ph_string(text)},
    {"is_int", ph_bool(is_int)},
    {"int", ph_int(number)},
    {"real", is_real ? ph_double(real) : NULL},
    {"bytes", ph_bool(ph_as_bytes(ph_get(body, "text"), &bytes))},
    {"base64", ph_bytes_value(bytes)},
    {"first", ph_string(ph_member_name(body, 0))},
    {"second", ph_item(ph_get(body, "list"), 1)},
    {"none", ph_get(ph_get(body, "list"), "x")},
    {"absent", ph_string(ph_query(ctx, "none"))}));
}

static ph_code parts(const ph_context *ctx) {
  const ph_value *body = ph_body_or_null(ctx);
  if (body == NULL) return ph_json_error(400, "no JSON");
  const ph_text text = ph_get_string(body, "text");
  ph_text rest = text, part;
  ph_value *list = ph_array();
  while (ph_split(&rest, ph_get_string(body, "separator"), &part)) ph_append(list, ph_string(ph_trim(part.data)));
  return ph_json(200, ph_object(
    {"parts", list},
    {"url", ph_string(ph_url_encode(text))},
    {"behind", ph_string(ph_strip_prefix(text, "slot:"))}));
}

static ph_code raw(const ph_context *ctx) { return ph_json(200, ph_string(ph_body(ctx))); }

static ph_code prints(const ph_context *ctx) {
  printf("request %s", ctx->request_id.data);
  return ph_respond(200, ph_object({"Content-Type", ph_string("text/plain")}), ph_format("%.2f", 1.5));
}
${plugin(['echo', 'texts', 'parts', 'raw', 'prints'].map(trigger).join(', '))}`;

const TEXTS = ['', 'ü', 'a\u0000b', '😀', '\u2028', '"\\/\b\f\n\r\t\u0001\u007f', '\ud83d', 'x'.repeat(100_000)];
const VALUES: unknown[] = [
  ...[null, true, false, 0, -1, 1.5e300, 'x', [], {}, [[]], [{}], { a: {} }, { '': 1, b: [1, [2, 'x', null]] }],
  ...TEXTS.map(text => ({ [text]: text })),
  Array.from({ length: 1000 }, (_, k) => ({ k, list: [k] })),
];
const NO_JSON = [
  ...String.raw`{ [ [1 [1, [1,] {"a" {"a": {"a":1 {"a":1, {"a":1,} {a:1} "a "\ "\u12 "\u12x4" "\x" "a"b } ] [} {]`.split(
    ' ',
  ),
  ...'01 1. .5 - 1e +1 nul nullx tru NaN'.split(' '),
  ...['', ' ', '[1 2]', '1 2', '"\n"', '"\u0000"'],
];

t.test('JSON is read and written as the language has it', { skip: noC ?? false }, async t => {
  const host = await hostOf(t, (await built(t, { 'main.c': ECHO })).module);
  const echo = async (body: string) => await host.http('POST /echo', { body });
  for (const [k, value] of VALUES.entries()) {
    const body = JSON.stringify(value);
    const answer = await echo(body);
    t.equal(answer.failure, '', `value ${k}`);
    t.same(JSON.parse(answer.text), JSON.parse(body.replaceAll('\\ud83d"', '\ufffd"')), `value ${k}`);
  }
  const digits = '[9223372036854775807,-9223372036854775808,123456789012345678901234567890,1.10,1E+2]';
  t.equal((await echo(` ${digits.replaceAll(',', ' ,\t\r\n')} `)).text, digits, 'numbers keep their digits');
  t.equal((await echo('"\\ud83d\\ude00\\u00fc\\/"')).text, '"😀ü/"', 'escapes');
  t.equal((await echo('["\\ude00\\ud83d","\\ud83dx"]')).text, '["\ufffd\ufffd","\ufffdx"]', 'halves of pairs');
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  t.equal((await echo(deep)).text, deep, 'deep nesting');
  for (const body of NO_JSON)
    t.match((await echo(body)).failure, /^this is not JSON: byte \d+: /, JSON.stringify(body));
});

t.test('texts, numbers and bytes of JSON', { skip: noC ?? false }, async t => {
  const host = await hostOf(t, (await built(t, { 'main.c': ECHO })).module);
  const texts = async (body: string) => (await host.http('POST /texts', { body })).text;
  t.equal(
    await texts('{"text":"AP8=","number":9007199254740993,"list":[1,"two"],"text":"AP8A"}'),
    '{"length":4,"again":"AP8A","is_int":true,"int":9007199254740993,"real":9007199254740992,"bytes":true,"base64":"AP8A","first":"text","second":"two","none":null,"absent":null}',
  );
  t.match(JSON.parse(await texts('{"text":"a\\u0000b","number":0.1}')), {
    length: 3,
    again: 'a\0b',
    is_int: false,
    int: 7,
    real: 0.1,
    bytes: false,
  });
  t.match(JSON.parse(await texts('{"number":9223372036854775808}')), { is_int: false, length: 0, again: null });
  t.match(JSON.parse(await texts('{"number":-9223372036854775808}')), { is_int: true });
  t.match(await texts('{"number":-9223372036854775808}'), /"int":-9223372036854775808,/);
  const bad = Uint8Array.of(0x61, 0xff, 0xc3, 0xbc, 0xed, 0xa0, 0x80, 0xf0, 0x9f, 0x98);
  const answer = await host.http('POST /raw', { body: bad });
  t.equal(answer.json, `a\ufffdü${'\ufffd'.repeat(6)}`, 'what is no UTF-8 becomes U+FFFD');
  const printed = await host.http('GET /prints');
  t.match(printed, { text: '1.50', logs: [{ level: 'info', text: 'request test' }] });
});

const INTO = `#include "plugin_host.h"

static ph_code ask(const ph_context *ctx) {
  char room[12];
  size_t length = 0;
  (void)ctx;
  PH_TRY(ph_call_plugin_into("menu", "today", ph_null(), room, sizeof room, &length));
  return ph_json(200, ph_string(ph_bytes(room, length)));
}
${plugin('{.name = "ask", .path = "/ask", .methods = {"GET"}, .handler = ask}', '.requirements = PH_REQUIREMENTS(PH_PLUGIN_DEP("menu", "Asks")),')}`;

t.test('the answer of another plugin is written into a buffer that holds it', { skip: noC ?? false }, async t => {
  const { module } = await built(t, { 'main.c': INTO });
  const answering = (soup: string) => hostOf(t, module, { plugins: { menu: { today: () => ({ soup }) } } });
  t.equal((await (await answering('x')).http('GET /ask')).json, '{"soup":"x"}');
  const failure = /^the answer has 13 bytes, the buffer 12\n {4}at ask \(main\.c:7\)/;
  t.match(await (await answering('xx')).http('GET /ask'), { status: 502, failure });
});

t.test('parts of texts', { skip: noC ?? false }, async t => {
  const host = await hostOf(t, (await built(t, { 'main.c': ECHO })).module);
  const parts = async (body: unknown) => (await host.http('POST /parts', { body })).json;
  t.same(await parts({ text: ' soup ;\t\n; cake', separator: ';' }), {
    parts: ['soup', '', 'cake'],
    url: '%20soup%20%3B%09%0A%3B%20cake',
    behind: ' soup ;\t\n; cake',
  });
  t.same(await parts({ text: 'slot:ü', separator: '' }), {
    parts: ['slot:ü'],
    url: 'slot%3A%C3%BC',
    behind: 'ü',
  });
  t.match(await parts({ text: '', separator: ', ' }), { parts: [''], url: '', behind: '' });
  t.match(await parts({ text: 'a, b,c, ', separator: ', ' }), { parts: ['a', 'b,c', ''] });
  t.match(await parts({ text: 'slot:', separator: ':' }), { parts: ['slot', ''], behind: '' });
  const unreserved = 'AZaz09-._~';
  t.match(await parts({ text: unreserved, separator: '--' }), { parts: [unreserved], url: unreserved });
  t.same(await parts({ text: 7 }), { parts: [], url: '', behind: null }, 'a number is no string');
  t.match(await host.http('POST /parts', { body: '{' }), { status: 400, json: { error: 'no JSON' } });
});

t.test('what is not debug information is a warning', t => {
  const { module, warnings } = withPositions(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0), '.');
  t.equal(module.length, 8);
  t.match(warnings, [/^failures of this plugin have no lines: the compiler has left no debug information/]);
  t.end();
});
