import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { describeModule } from '../../sdk/describe-module.ts';
import { newProject } from '../../src/authors/new-project.ts';
import { buildProject, endBuilds } from '../../src/projects/build-project.ts';
import { isLanguage, readProject } from '../../src/projects/project.ts';
import { run } from '../support/author.ts';
import { missingToolchain } from '../support/toolchains.ts';
import { assemble } from '../support/wat.ts';

/** What an author does wrong is said by the build with the place and the way out, in every language. */

type Edit = [from: string | RegExp, to: string];
type Wrong = {
  file: string;
  /** The template without its requirement, and the place of the call that needs it. */
  denied: Edit;
  call: RegExp;
  /** One trigger more of the same name. */
  twice: Edit;
  /** A type or a name that is wrong, and its place. */
  mistake: Edit;
  place: RegExp;
  /** Nothing is declared. */
  declares: Edit;
};

const TRIGGER = /(\{\s*(?:Name|\.name)[\s\S]*?[hH]andler\b[^\n]*\n\s*\})/;
const KITS: Readonly<Record<'ts' | 'go' | 'rust' | 'c' | 'as', Wrong>> = {
  ts: {
    file: 'index.ts',
    denied: [/Requirements: .*\n/, ''],
    call: /index\.ts:\d+:\d+: this call is denied without the requirement KV\(/,
    twice: [TRIGGER, '$1, $1'],
    mistake: ['times }', 'times'],
    place: /index\.ts:\d+:\d+: /,
    declares: [/definePlugin\([\s\S]*?\}\);/, ''],
  },
  go: {
    file: 'main.go',
    denied: [/\t\tRequirements: .*\n/, ''],
    call: /main\.go:\d+:\d+: this call is denied without the requirement KV\(/,
    twice: [/(\{\{)([\s\S]*?)(\t\t\}\},)/, '{{$2}, {$2}},'],
    mistake: ['"times": times', '"times": time'],
    place: /main\.go:\d+:\d+: undefined: time/,
    declares: [/func init\(\) \{[\s\S]*?\n\}\n/, 'func init() { _ = greet; _ = pluginhost.KV }\n'],
  },
  rust: {
    file: 'src/lib.rs',
    denied: [/\s*\.require\(.*\)/, ''],
    call: /src\/lib\.rs:\d+:\d+: this call is denied without the requirement kv\(/,
    twice: [/(\.trigger\([\s\S]*?\n {8}\))/, '$1$1'],
    mistake: ['"times": times', '"times": time'],
    place: /src\/lib\.rs:\d+:\d+/,
    declares: ['plugin!(declare);', '#[allow(dead_code)]\nconst DECLARED: fn() -> Plugin = declare;'],
  },
  c: {
    file: 'main.c',
    denied: [/ {2}\.requirements = .*\n/, ''],
    call: /main\.c:\d+:\d+: this call is denied without the requirement PH_KV\(/,
    twice: [/PH_TRIGGERS\(([\s\S]*?)\),\n\};/, 'PH_TRIGGERS($1, $1),\n};'],
    mistake: ['ph_int(times)', 'ph_int(time)'],
    place: /main\.c:\d+:\d+: /,
    declares: ['const ph_plugin plugin = {', 'const ph_plugin other = {'],
  },
  as: {
    file: 'index.ts',
    denied: [/\n {2}\.Requires.*/, ''],
    call: /index\.ts:\d+:\d+: this call is denied without the requirement KV\(/,
    twice: [/(\n {2}\.HTTP.*)/, '$1$1'],
    mistake: ['times.value', 'time.value'],
    place: /index\.ts:\d+:\d+: /,
    declares: [/Plugin\([\s\S]*?;\n/, ''],
  },
};

for (const [language, wrong] of Object.entries(KITS)) {
  if (!isLanguage(language)) throw new Error(`${language} is no language`);
  const skip = missingToolchain(language) ?? false;
  t.test(`mistakes of an author in ${language} are named by the build`, { skip }, async t => {
    const folder = path.join(t.testdir({}), 'wrong');
    newProject(folder, language, 'http');
    const file = path.join(folder, wrong.file);
    const source = fs.readFileSync(file, 'utf8');
    const build = async (...[from, to]: Edit) => {
      const changed = source.replace(from, to);
      if (changed === source) throw new Error(`${from} is not in ${wrong.file} of the template in ${language}`);
      fs.writeFileSync(file, changed);
      return await buildProject(readProject(folder));
    };
    const { findings, warnings } = await build(...wrong.denied);
    t.match(warnings, [wrong.call], 'a permission that is not required');
    t.notOk(
      findings.some(f => f.rule === 'undeclared'),
      'is said once, with its place',
    );
    t.match(
      (await build(/Counts who was greeted/, '')).warnings,
      [/^the requirement "kv" has no reason: say in a sentence what it is for/],
      'a requirement without a reason',
    );
    await t.rejects(build(...wrong.twice), /the name "greet" is used twice: rename one of the triggers/);
    await t.rejects(
      build(/(["'])\/greet\/:name["']/, '$1greet$1'),
      /trigger "greet", path: "greet" does not begin with \/; a path like \/profile/,
    );
    await t.rejects(
      build(/(["'])\/greet\/:name["']/, '$1/greet/:name/:name$1'),
      /trigger "greet", path: \/greet\/:name\/:name has the parameter :name twice: rename one/,
    );
    await t.rejects(build(...wrong.mistake), wrong.place);
    await t.rejects(build(...wrong.declares), /declares? nothing|no manifest|no plugin|Register|definePlugin|plugin!/);
  });
}

/** What a compiler lets pass in the template of a command. */
const LOOSE = {
  go: {
    file: 'main.go',
    access: ['Handler:     menu', 'Handler: menu, Access: pluginhost.Users("Users ask")'],
    handler: ['Handler:     menu,', ''],
  },
  rust: {
    file: 'src/lib.rs',
    access: ['.description(', '.access(Access::users("Users ask")).description('],
    handler: null,
  },
  c: {
    file: 'main.c',
    access: ['.handler = menu', '.handler = menu, .access = PH_USERS("Users ask")'],
    handler: ['.handler = menu,', ''],
  },
} as const;

for (const [language, { access, file, handler }] of Object.entries(LOOSE)) {
  if (!isLanguage(language)) throw new Error(`${language} is no language`);
  const skip = missingToolchain(language) ?? false;
  t.test(`what has no effect or is missing in ${language} is said though the compiler is silent`, { skip }, async t => {
    const folder = path.join(t.testdir({}), 'loose');
    newProject(folder, language, 'messenger');
    const source = fs.readFileSync(path.join(folder, file), 'utf8');
    const build = async ([from, to]: readonly [string, string]) => {
      if (!source.includes(from)) throw new Error(`${from} is not in ${file} of the template in ${language}`);
      fs.writeFileSync(path.join(folder, file), source.replace(from, to));
      return await buildProject(readProject(folder));
    };
    t.match((await build(access)).findings, [
      { rule: 'unknown-member', message: /a command suggests no access: an admin/ },
    ]);
    if (handler !== null) await t.rejects(build(handler), /the trigger menu has no \.?[hH]andler/);
  });
}

t.test('a start that does not end is said by the build, and the next build works', async t => {
  const loops = assemble('(module (memory (export "memory") 1) (func (export "_initialize") (loop $l (br $l))))');
  await t.rejects(describeModule(loops), /the start of the module did not end within 10 s: is there an endless loop/);
  await t.rejects(describeModule(assemble('(module (memory (export "memory") 1))')), /declares no plugin/);
});

const OLD_GO = '#!/bin/sh\necho /usr/lib/go\necho go1.21.0\n';

t.test('a toolchain that is missing or too old is said, with what to install', async t => {
  const bin = t.testdir({ empty: {}, old: { go: OLD_GO } });
  fs.chmodSync(path.join(bin, 'old/go'), 0o755);
  const build = async (language: 'go' | 'rust' | 'c', tools: string) => {
    const folder = path.join(bin, `${language}-${tools}`);
    newProject(folder, language, 'http');
    return await run(['build', folder], { PATH: path.join(bin, tools) });
  };
  const [old, go, rust, c] = await Promise.all([
    build('go', 'old'),
    build('go', 'empty'),
    build('rust', 'empty'),
    build('c', 'empty'),
  ]);
  t.match(old, { code: 1, err: /this is go1\.21\.0; Go 1\.24 or newer is needed/ });
  t.match(go, { code: 1, err: /Go is not installed \(go 1\.24 or newer is needed, from https:\/\/go\.dev\/dl\)/ });
  t.match(rust, {
    code: 1,
    err: /Rust is not installed, or too old \(1\.81 or newer is needed; https:\/\/rustup\.rs\)/,
  });
  t.match(c, { code: 1, err: /apt-get install clang lld wasi-libc/ });
});

t.teardown(endBuilds);
