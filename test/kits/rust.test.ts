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
const KIT = path.resolve(import.meta.dirname, '../../sdk/rust/kit');
const noRust = missingToolchain('rust');

/** The handler of sdk/rust/README.md "Serde", around it a plugin. */
const SOURCE = `use plugin_host::*;
use plugin_host_serde::{ContextExt, ReadAs};
use serde::{Deserialize, Serialize};

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
    let mut order: Order = ctx.http().read_as()?;
    let menu: Menu = ctx.call_plugin_into("menu", "today", &order)?;
    order.portions += menu.price;
    ctx.json_of(200, &order)
}
`;

t.test('the tests of the kit pass', { skip: noRust ?? false }, async t => {
  const { stdout } = await run('cargo', ['test', '--lib', '--quiet', '--offline', '--target-dir', t.testdir({})], {
    cwd: KIT,
  });
  t.match(stdout, /test result: ok\. [1-9]\d* passed; 0 failed/);
});

t.test('types of serde are read and written as the page of the kit says', { skip: noRust ?? false }, async t => {
  const folder = path.join(t.testdir({}), 'canteen');
  newProject(folder, 'rust', 'http');
  const cargo = path.join(folder, 'Cargo.toml');
  const more = 'plugin-host-serde = { path = "kit/serde" }\nserde = { version = "1", features = ["derive"] }\n';
  const kit = 'plugin-host = { path = "kit" }\n';
  fs.writeFileSync(cargo, fs.readFileSync(cargo, 'utf8').replace(kit, kit + more));
  const source = path.join(folder, 'src/lib.rs');
  fs.writeFileSync(source, SOURCE);
  const { module, warnings } = await buildPlugin(source);
  t.same(warnings, []);
  const host = new TestHost(module, {
    plugins: { menu: { today: order => ({ price: 41, order }) } },
  });
  t.teardown(() => host.close());
  const answer = await host.http('POST /order', { body: '{"dish":"суп","portions":9007199254740993}' });
  t.match(answer, { status: 200, text: '{"dish":"суп","portions":9007199254741034}' });
});
