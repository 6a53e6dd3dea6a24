import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { edit, made, replace, run, startDev } from '../support/author.ts';
import { BARE_ENV } from '../support/bare-env.ts';
import { MAIN } from '../support/commands.ts';
import { startTestService, TOKEN } from '../support/service.ts';
import { until } from '../support/until.ts';

/** An author at a terminal: from an empty folder to a plugin that runs (sdk/typescript/README.md). */

t.test('templates and samples are named in the help', async t => {
  const { out } = await run(['new', '--help']);
  const words = out.replace(/\s+/g, ' ');
  const begins = ['http, messenger, files, sql', 'hello, guestbook, booking, grades, weather, menu, filebox, recipes'];
  for (const names of begins) t.ok(words.includes(names), words);
});

t.test('each wrong step is one message that says where and what to do', async t => {
  const folder = await made(t, 'wrong-steps');
  t.match(await run(['new', folder]), { code: 1, err: /is there already and is not empty; name another folder/ });
  t.match(await run(['new', '/tmp/Bad Name']), { code: 2, err: /"Bad Name" cannot be the id of a plugin/ });
  t.match(await run(['new', 'x', '--lang', 'cobol']), { code: 2, err: /--lang cobol is none of ts \(TypeScript\)/ });
  t.match(await run(['new', 'x', '--template', 'htp']), {
    code: 2,
    err: /did you mean "http"\?; there are files, http, messenger, sql, booking, filebox, grades/,
  });
  t.match(await run(['build', t.testdirName]), { code: 1, err: /has no plugin-host\.json; make one with plugin-host/ });
  t.match(await run(['inspect', path.join(folder, 'none.wasm')]), { code: 1, err: /cannot be read/ });
  t.match(await run(['inspect', path.join(folder, 'index.ts')]), { code: 3, out: /this is not a WebAssembly file/ });
  const mistakes: Array<[from: string, to: string, says: RegExp]> = [
    [
      "Users('Users may be greeted')",
      "Users('Users may be greeted').Policy('has_rol(\"tutor\")')",
      /refusal: trigger greet: its policy has_rol\("tutor"\) cannot be saved: .*did you mean "has_role"\?/,
    ],
    ["Path: '/greet/:name'", "Path: 'greet'", /trigger "greet", path: "greet" does not begin with \/; a path like/],
    [
      "Methods: ['GET']",
      "Methods: ['get' as 'GET']",
      /trigger "greet", methods 0: "get" is no HTTP method: it is one of GET, .* in capital letters/,
    ],
    ["'/greet/:name'", "'/greet/a b/:name'", /path: "\/greet\/a b\/:name": the segment "a b" is neither letters/],
    ["Methods: ['GET']", 'Methods: []', /trigger "greet", methods: at least one HTTP method/],
    ['times });', 'times };', /index\.ts:\d+:\d+: Expected "\)"/],
    ['ctx.HTTP.Params.name', 'ctx.HTTP.Param.name', /index\.ts:\d+:\d+: TS2\d+: Property 'Param' does not exist/],
    ['definePlugin({', 'void ({', /call definePlugin/],
    ['times });', 'times: document.title });', /TS2584: Cannot find name 'document'\. A plugin has no DOM\.$/m],
    ['times });', 'times: process.pid });', /Cannot find name 'process'\. A plugin has the language and the kit/],
  ];
  const good = fs.readFileSync(path.join(folder, 'index.ts'), 'utf8');
  for (const [from, to, says] of mistakes) {
    edit(folder, from, to);
    t.match(await run(['build', folder]), { code: 3, err: says }, to);
    fs.writeFileSync(path.join(folder, 'index.ts'), good);
  }
  // What the kit refuses without a place has one in the type check; a module of before is not these sources.
  edit(folder, 'ID:', 'Id:');
  fs.mkdirSync(path.join(folder, 'build'), { recursive: true });
  fs.writeFileSync(path.join(folder, 'build/old.wasm'), '');
  t.match(await run(['build', folder]), {
    code: 3,
    err: /index\.ts:\d+:\d+: TS2561: .*'Id'.*'ID'[\s\S]*manifest \/id: is missing[\s\S]*build\/old\.wasm is still that of an earlier build/,
  });
  fs.writeFileSync(path.join(folder, 'index.ts'), good);
  fs.writeFileSync(path.join(folder, 'plugin-host.json'), '{"lang":"ts","entri":"index.ts"}');
  t.match(await run(['build', folder]), { code: 1, err: /plugin-host\.json: .*entri/ });
});

t.test('a test of an author that fails ends with 1', async t => {
  const folder = await made(t, 'failing');
  const tests = path.join(folder, 'test/plugin.test.ts');
  const before = fs.readFileSync(tests, 'utf8');
  fs.writeFileSync(
    tests,
    before.replace(
      /^test\('/m,
      "test('mistaken', async () => {\n  const host = await testHost();\n  await host.http('GET /greet/a', { json: 1 });\n});\n\ntest('",
    ),
  );
  const mistaken = await run(['test', folder]);
  t.match(mistaken, {
    code: 1,
    out: /http\(\) has no option "json"; it has user, serviceKey, kv, grant, headers, body/,
  });
  fs.writeFileSync(tests, before);
  edit(folder, 'Hello,', 'Goodbye,');
  const { code, out } = await run(['test', folder]);
  t.equal(code, 1);
  t.match(out, /Goodbye, Ada!/);
});

t.test('plugin dev serves the plugin, takes up each change, and keeps its data', async t => {
  const folder = await made(t, 'lively');
  const { call, child, ended, shows } = await startDev(t, folder);
  await shows(/curl -H 'X-Dev-Principal: user:7' \S+\/lively\/greet\/name/);
  const as = { 'X-Dev-Principal': 'user:7' };
  // A save may be taken up in two steps, so that "is live" is no sign of the last one.
  const answers = (text: string) => until(async () => (await call('lively/greet/ada', as)).text.includes(text));
  t.same(await call('lively/greet/ada', as), { status: 200, text: '{"message":"Hello, ada!","times":1}' });
  await shows(/GET \/api\/triggers\/http\/lively\/greet\/ada 200/);
  t.equal((await call('lively/greet/ada')).status, 401, 'without a principal it is what it is in production');
  t.match(await call('lively/greet/ada', { 'X-Dev-Principal': 'ada' }), {
    status: 400,
    text: /write user:7 or service:1/,
  });
  const other = await run(['dev', folder, '--port', '0']);
  t.match(other, {
    code: 1,
    err: new RegExp(
      `runs for this folder already, in process ${child.pid} \\(plugin-host plugin dev\\): stop it first`,
    ),
  });
  edit(folder, 'Hello,', 'Hi,');
  await shows(/lively 0\.1\.0 is live/);
  t.same(await call('lively/greet/ada', as), { status: 200, text: '{"message":"Hi, ada!","times":2}' });
  for (const [from, to] of [
    ['Hi,', 'Hey,'],
    ['Hey,', 'Ho,'],
  ] as const) {
    replace(folder, from, to);
    t.ok(await answers(to), 'saved by renaming, again and again');
  }
  // Each later change comes while the watcher is silent about the one before, or while that one is built.
  for (const [k, ms] of [15, 30, 45, 90].entries()) {
    edit(folder, k === 0 ? 'Ho,' : `No ${k - 1}b,`, `No ${k}a,`);
    await sleep(ms);
    edit(folder, `No ${k}a,`, `No ${k}b,`);
    t.ok(await answers(`No ${k}b,`), `a change ${ms} ms after another one is taken up`);
  }
  fs.mkdirSync(path.join(folder, 'parts/build'), { recursive: true });
  fs.writeFileSync(path.join(folder, 'parts/build/hi.ts'), "export const hello = 'No 3b,';\n");
  edit(folder, 'import ', "import { hello } from './parts/build/hi.ts';\nimport ");
  edit(folder, 'message: `No 3b,', 'message: hello + `');
  await shows(/lively 0\.1\.0 is live/);
  fs.writeFileSync(path.join(folder, 'parts/build/hi.ts'), "export const hello = 'Good day,';\n");
  t.ok(await answers('Good day,'), 'also of a folder in it that is called like one of builds');
  edit(folder, 'message: hello + `', 'message: `No 3b,');
  t.ok(await answers('No 3b,'));
  edit(folder, 'times });', 'times };');
  await shows(/not built; the version before goes on:\nindex\.ts:\d+:\d+: Expected "\)"/);
  t.equal((await call('lively/greet/ada', as)).status, 200, 'the version before goes on');
  edit(folder, 'times };', 'who: ctx.HTTP.Auth?.UserID, x: (times as never as { a: { b: 1 } }).a.b });');
  await shows(/is live/);
  t.equal((await call('lively/greet/ada', as)).status, 502);
  await shows(
    /greet: handler_error: TypeError: cannot read property 'b' of undefined\n +at greet \(index\.ts:2\d:\d+\)/,
  );
  child.kill('SIGTERM');
  t.equal(await ended, 0);
});

t.test('what was built is uploaded, installed, called and read from a terminal', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const env = { PLUGIN_HOST_URL: s.base, PLUGIN_HOST_TOKEN: TOKEN };
  const folder = await made(t, 'shipped');
  edit(folder, "Access: Users('Users may be greeted'),", '');
  edit(folder, 'ctx.JSON(200', "console.log('greets', name);\n  ctx.JSON(200");
  for (const place of [folder, path.join(folder, 'index.ts')])
    t.match(await run(['upload', place], env), {
      code: 1,
      err: /is not built: run plugin-host plugin build \S*shipped,/,
    });
  t.equal((await run(['build', folder])).code, 0);
  const uploaded = await run(['upload', path.join(folder, 'build/shipped.wasm'), '--json'], env);
  const { wasm_key: key } = JSON.parse(uploaded.out) as { wasm_key: string };
  t.match(await run(['install', 'shipped', key], env), { code: 0, out: /is installed and enabled/ });
  t.match(await run(['call', 'shipped', '/greet/ada'], env), { code: 1, out: /^401 \(request .*\/account\/ of the/s });
  t.match(await run(['logs', 'shipped'], env), {
    code: 0,
    out: /no executions are recorded; a request that was refused/,
  });
  t.match(await run(['logs', 'missing'], env), { code: 1, err: /there is no plugin "missing"/ });
  const open = { allow_user_session: false, accept_public: true };
  t.equal((await s.admin('PUT', '/plugins/shipped/triggers/greet/settings', open)).status, 200);
  t.match(await run(['call', 'shipped', '/greet/ada'], env), { code: 0, out: /"times":1/ });
  t.match(await run(['call', 'shipped', '/none'], env), { code: 1, out: /^404 \(request / });
  t.match(await run(['call', 'shipped', 'none'], env), { code: 2, err: /must begin with \// });
  // Records are written a moment later.
  let logs = await run(['logs', 'shipped'], env);
  for (let k = 0; k < 50 && !logs.out.includes('greets'); k++) logs = await run(['logs', 'shipped'], env);
  t.match(logs, { code: 0, out: /greet ok 200 \d+\.\d ms, execution \d+\n {2}info: greets ada\n/ });
  t.match(await run(['logs', 'shipped', '--limit', '0'], env), { code: 2, err: /from 1 to 100/ });
  const child = spawn(process.execPath, [MAIN, 'plugin', 'logs', 'shipped', '-f'], { env: { ...BARE_ENV, ...env } });
  const ended = new Promise(resolve => child.once('close', resolve));
  let out = '';
  child.stdout.on('data', (c: Buffer) => (out += c.toString()));
  const shows = async (text: string): Promise<void> => {
    await until(() => out.includes(text));
  };
  await shows('info: greets ada');
  await run(['call', 'shipped', '/greet/grace'], env);
  await shows('info: greets grace');
  child.kill('SIGINT');
  await ended;
  t.equal(out.match(/greets ada/g)?.length, 1, 'each execution is shown once');
});

t.test('plugin test says once what does not build, and types that do not fit', async t => {
  const folder = await made(t, 'typed');
  const file = path.join(folder, 'index.ts');
  const source = fs.readFileSync(file, 'utf8');
  const wait = 'const wait = (ms: number) => new Promise<void>(done => setTimeout(done, ms));\nvoid wait;\n';
  const tests = path.join(folder, 'test/plugin.test.ts');
  const passing = fs.readFileSync(tests, 'utf8');
  fs.writeFileSync(file, `${source}${wait}const n: number = 'seven';\nvoid n;\nvoid (() => fetch('x'));\n`);
  fs.writeFileSync(tests, `${passing}testHost({ foldr: '.' });\n`);
  const mistyped = await run(['test', folder]);
  t.equal(mistyped.code, 3, mistyped.out);
  t.match(mistyped.out, /^# fail 0$/m, 'the tests themselves have run, and passed');
  const said = mistyped.err.split('\n').filter(line => line.startsWith('types: '));
  t.match(said, [
    /^types: index\.ts:\d+:\d+: TS2322: /,
    /^types: index\.ts:\d+:\d+: TS2304: Cannot find name 'fetch'\. A plugin has no network of its own; use ctx/,
    /^types: test\/plugin\.test\.ts:\d+:\d+: TS2561: .*foldr/,
  ]);
  t.equal(said.length, 3, mistyped.err);
  fs.writeFileSync(tests, passing);
  fs.writeFileSync(file, `${source}const n = ;\n`);
  const broken = await run(['test', folder]);
  t.equal(broken.code, 3);
  t.equal((broken.out + broken.err).match(/Unexpected ";"/g)?.length, 1);
  t.match(await run(['test', 'test/plugin.test.ts']), { code: 2, err: /name the folder of the plugin before it/ });
});
