import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { buildPlugin } from '../../sdk/rust/build.ts';
import { newProject } from '../../src/authors/new-project.ts';
import { TestHost } from '../../src/authors/test-host.ts';
import { missingToolchain } from '../support/toolchains.ts';

/** The kit for Rust: its own tests, and its second crate for types of serde. */

const run = promisify(execFile);
const SDK = path.resolve(import.meta.dirname, '../../sdk/rust');
const skip = missingToolchain('rust') ?? false;

/** What the page of the kit shows under "Serde": lines of Cargo.toml, and of a handler. */
function onPage(): { dependencies: string; imported: string; handler: string } {
  const [, section = ''] = fs.readFileSync(path.join(SDK, 'README.md'), 'utf8').split('\n## Serde\n');
  const [, toml = ''] = /```toml\n\[dependencies\]\n([\s\S]*?)```/.exec(section) ?? [];
  const [, imported = '', handler = ''] = /```rust\n(use .*\n)\n([\s\S]*?)```/.exec(section) ?? [];
  return { dependencies: toml, imported, handler };
}

const sourceOf = ({ handler, imported }: ReturnType<typeof onPage>): string => `use plugin_host::*;
${imported}use serde::{Deserialize, Serialize};

plugin!(declare);

#[derive(Serialize, Deserialize)]
struct Order {
    dish: String,
    portions: u64,
}

#[derive(Deserialize)]
struct Menu {
    price: u64,
}

fn declare() -> Plugin {
    Plugin::new("canteen", "Canteen", "1.0.0")
        .require(plugin_dep("menu", "Asks for the price").build())
        .trigger(Trigger::http("order", "/order", order).methods(["POST"]))
}

fn order(ctx: &Context) -> Result {
    ${handler}
    ctx.log(&format!("{} for {}", menu.price, order.dish));
    Ok(())
}
`;

t.test('the tests of the kit pass', { skip }, async t => {
  const folder = t.testdir({});
  fs.cpSync(path.join(SDK, 'kit'), folder, { recursive: true });
  const { stdout } = await run('cargo', ['test', '--lib', '--quiet', '--offline'], { cwd: folder });
  t.match(stdout, /test result: ok\. [1-9]\d* passed; 0 failed/);
});

t.test('types of serde are read and written as the page of the kit says', { skip }, async t => {
  const folder = path.join(t.testdir({}), 'canteen');
  newProject(folder, 'rust', 'http');
  const page = onPage();
  const cargo = path.join(folder, 'Cargo.toml');
  const kit = 'plugin-host = { path = "kit" }\n';
  fs.writeFileSync(cargo, fs.readFileSync(cargo, 'utf8').replace(kit, page.dependencies));
  const source = path.join(folder, 'src/lib.rs');
  fs.writeFileSync(source, sourceOf(page));
  const { module, warnings } = await buildPlugin(source);
  t.same(warnings, []);
  const host = new TestHost(module, {
    plugins: { menu: { today: order => ({ price: 41, order }) } },
  });
  t.teardown(() => host.close());
  const body = '{"dish":"суп","portions":9007199254740993}';
  t.match(await host.http('POST /order', { body }), { status: 200, text: body, logs: [{ text: '41 for суп' }] });
});

const PANICS = `use plugin_host::*;

plugin!(declare);

fn declare() -> Plugin {
    Plugin::new("panics", "Panics", "1.0.0")
        .trigger(Trigger::http("divide", "/divide", divide).methods(["GET"]))
        .trigger(Trigger::http("index", "/index", index).methods(["GET"]))
        .trigger(Trigger::http("none", "/none", none).methods(["GET"]))
}

fn divide(ctx: &Context) -> Result {
    ctx.json(200, 7 / ctx.http().query.len() as i64)
}

fn index(ctx: &Context) -> Result {
    ctx.json(200, [1, 2][ctx.http().path.len()])
}

fn none(ctx: &Context) -> Result {
    let number: Option<i64> = ctx.http().query.get("none").and_then(|text| text.parse().ok());
    ctx.json(200, number.unwrap())
}
`;

t.test('a panic in Rust names its reason, file and line', { skip }, async t => {
  const folder = path.join(t.testdir({}), 'panics');
  newProject(folder, 'rust', 'http');
  const source = path.join(folder, 'src/lib.rs');
  fs.writeFileSync(source, PANICS);
  const host = new TestHost((await buildPlugin(source)).module, {});
  t.teardown(() => host.close());
  const failureOf = async (trigger: string): Promise<string> => (await host.http(`GET /${trigger}`)).failure;
  t.match(await failureOf('divide'), /divide by zero[\s\S]*src\/lib\.rs:13/);
  t.match(await failureOf('index'), /out of bounds[\s\S]*src\/lib\.rs:17/);
  t.match(await failureOf('none'), /None[\s\S]*src\/lib\.rs:22/);
});
