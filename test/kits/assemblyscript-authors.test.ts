import t from 'tap';
import { edit, made, startDev } from '../support/author.ts';

/** An author of AssemblyScript at a terminal (sdk/assemblyscript/README.md). */

t.test('plugin dev shows mistakes and traps of AssemblyScript with their lines', async t => {
  const folder = await made(t, 'assembled', '--lang', 'as');
  const { call, shows } = await startDev(t, folder);
  const as = { 'X-Dev-Principal': 'user:7' };
  t.same(await call('assembled/greet/ada', as), { status: 200, text: '{"message":"Hello, ada!","times":1}' });
  edit(folder, 'times.value', 'times.valu');
  await shows(/not built; the version before goes on:\nindex\.ts:\d+:\d+: TS2339: Property 'valu' does not exist/);
  t.equal((await call('assembled/greet/ada', as)).status, 200, 'the version before goes on');
  const [wrong, right] = ['+ "!").num("times", times.valu)', '+ zoe(name)).num("times", times.value)'];
  const zoe =
    'function zoe(name: string): string {\n  if (name == "zoe") throw new Error("no " + name);\n  return "!";\n}';
  edit(folder, `${wrong});\n}\n`, `${right});\n}\n${zoe}\n`);
  await shows(/is live/);
  t.equal((await call('assembled/greet/zoe', as)).status, 502);
  await shows(/greet: trapped: no zoe \(index\.ts:15:22\)\n +unreachable\n +at index\/greet \(index\.ts:15\)\n/);
});
