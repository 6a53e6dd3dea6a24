import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { newProject } from '../../src/authors/new-project.ts';
import type { Language } from '../../src/projects/project.ts';
import { missingToolchain } from '../support/toolchains.ts';

/**
 * The code that the pages of the kits show (sdk/LANGUAGE/README.md) is code of the language, with the names and types of
 * the kit. What a page takes as known, such as a text `url`, is declared here.
 */

const SDK = path.resolve(import.meta.dirname, '../../sdk');
const PACKAGES = path.resolve(SDK, '../node_modules');
const CHECKER = path.join(PACKAGES, 'typescript/bin/tsc');

/** Pieces of code of a page, in order. */
function shownOn(folder: string, fence: string): string[] {
  const page = fs.readFileSync(path.join(SDK, folder, 'README.md'), 'utf8');
  return [...page.matchAll(new RegExp(`^\`\`\`${fence}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(([, code = '']) => code);
}

/** What begins with this. */
function pieceOf(pieces: readonly string[], start: RegExp): string {
  const found = pieces.filter(p => start.test(p));
  if (found.length !== 1) throw new Error(`${found.length} pieces of code begin with ${start}`);
  return found[0] ?? '';
}

/** A list of calls is several: each begins with a comment of its own. */
const sectionsOf = (piece: string): string[] => piece.split(/\n\n(?=\/\/ )/);

function madeIn(t: Test, language: Language): string {
  const folder = path.join(t.testdir({}), 'shown');
  newProject(folder, language, 'http');
  return folder;
}

/** What a compiler prints, whether it ends well or not. */
function said(command: string, args: string[], cwd: string): string {
  const { error, stderr, stdout } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (error !== undefined) throw error;
  return stdout + stderr;
}

/** Writes pieces of code as files, has the compiler check them, and sees that it names a mistake. */
function checks(
  t: Test,
  files: Record<string, string>,
  look: (files: Record<string, string>) => string,
  mistake: { file: string; from: string; to: string; says: RegExp },
): void {
  t.equal(look(files), '');
  const text = files[mistake.file] ?? '';
  t.ok(text.includes(mistake.from));
  t.match(look({ [mistake.file]: text.replace(mistake.from, mistake.to) }), mistake.says, 'a mistake is one');
}

const write = (folder: string, files: Record<string, string>): void => {
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), text);
};

const TS_KNOWN = 'ctx: Context, page: string, slot: string, name: string, chatID: string';
const TS_TEST =
  "import assert from 'node:assert/strict';\nimport { testHost } from '@plugin-host/sdk/test';\nconst host = await testHost();\n";
const TS_IMPORTS = "import { type Context, NewMessage, Students } from '@plugin-host/sdk';\n";

function typescriptFile(piece: string): string {
  if (piece.startsWith('import ')) return piece;
  if (piece.startsWith('const host = ')) return TS_TEST.replace(/const host.*\n/, '') + piece;
  if (/\bhost\.http\(/.test(piece)) return TS_TEST + piece;
  const [, whole = '', rest = ''] = /^(function [\s\S]*?^}\n)?([\s\S]*)$/m.exec(piece) ?? [];
  return `${TS_IMPORTS}export ${whole === '' ? '' : `${whole}export `}function shown(${TS_KNOWN}): void {\n${rest}}\n`;
}

t.test('TypeScript', t => {
  const folder = madeIn(t, 'ts');
  const pieces = shownOn('typescript', 'ts');
  t.ok(pieces.length > 9, `${pieces.length} pieces`);
  const files = Object.fromEntries(pieces.map((p, k) => [`shown-${k}.ts`, typescriptFile(p)]));
  // Tests of authors run in Node.
  const types = ['--types', 'node', '--typeRoots', path.join(PACKAGES, '@types')];
  const look = (files: Record<string, string>) => {
    write(folder, files);
    return said(process.execPath, [CHECKER, '--noEmit', '-p', '.', ...types], folder);
  };
  const file = Object.keys(files).find(name => files[name]?.includes('ctx.KVIncrement')) ?? '';
  checks(t, files, look, { file, from: 'ctx.KVIncrement', to: 'ctx.KVCount', says: /error TS\d+: .*KVCount/ });
  t.end();
});

const GO_KNOWN = `
type order struct{ Dish string }
func list(ctx *pluginhost.Context) error { return nil }
func slots(ctx *pluginhost.Context) error { return nil }
func free(ctx *pluginhost.Context) error { return nil }
`;
const goFile = (imports: string[], body: string): string =>
  `package main\n\nimport (\n${imports.map(name => `\t"${name}"\n`).join('')})\n${body}`;

t.test('Go', { skip: missingToolchain('go') ?? false }, t => {
  const folder = madeIn(t, 'go');
  const pieces = shownOn('go', 'go');
  const sections = sectionsOf(pieceOf(pieces, /^\/\/ Requests/)).map((code, k) => {
    const imports = ['pluginhost', ...(code.includes('time.') ? ['time'] : [])];
    const known = 'ctx *pluginhost.Context, url string, body []byte, file pluginhost.FileRef';
    const request = /\br :=/.test(code) ? '' : 'r := ctx.HTTP\n_ = r\n';
    const begins = /\berr :?=/.exec(code)?.[0] === 'err =' ? 'var err error\n' : '';
    const declares = `${request}var order, asked map[string]any\n${begins}`;
    return [`shown${k}.go`, goFile(imports, `func shown${k}(${known}) {\n${declares}${code}\n}\n`)];
  });
  const declared = pieceOf(pieces, /^Requirements/);
  const files: Record<string, string> = {
    'main.go': pieceOf(pieces, /^package main/),
    'declared.go': goFile(['pluginhost'], `${GO_KNOWN}var _ = pluginhost.Plugin{\n${declared}}\n`),
    'shown_test.go': goFile(['testing', 'pluginhost/plugintest'], pieceOf(pieces, /^func Test/)),
    ...Object.fromEntries(sections),
  };
  fs.rmSync(path.join(folder, 'plugin_test.go'), { force: true });
  const look = (files: Record<string, string>): string => {
    write(folder, files);
    const words = said('go', ['test', '-count=1', '-run', 'none', '-vet=off', '-gcflags=-e', '.'], folder);
    return words
      .split('\n')
      .filter(line => /^\.?\/?\w+\.go:/.test(line) && !line.includes('declared and not used'))
      .join('\n');
  };
  const mistake = { file: 'shown1.go', from: 'ctx.KVDelete', to: 'ctx.KVRemove', says: /KVRemove undefined/ };
  checks(t, files, look, mistake);
  t.end();
});

t.test('Rust', { skip: missingToolchain('rust') ?? false }, t => {
  const folder = madeIn(t, 'rust');
  const pieces = shownOn('rust', 'rust');
  const sections = sectionsOf(pieceOf(pieces, /^\/\/ Requests/)).map((code, k) => {
    const known = "ctx: &Context, url: &'static str, chat_id: String, user_id: i64, file: FileRef";
    return `fn shown_${k}(${known}) -> Result {\n${code}\nOk(())\n}`;
  });
  const declared = pieceOf(pieces, /^Plugin::new/);
  const handlers = ['list', 'slots', 'free'].map(name => `fn ${name}(_: &Context) -> Result { Ok(()) }`);
  const files = {
    'src/lib.rs': [
      pieceOf(pieces, /^use plugin_host::\*;/),
      'use std::time::Duration;',
      `fn declared() -> Plugin {\n${declared}\n}`,
      ...handlers,
      ...sections,
    ].join('\n\n'),
  };
  const look = (files: Record<string, string>): string => {
    write(folder, files);
    const words = said('cargo', ['check', '--quiet', '--offline', '--message-format', 'short'], folder);
    return words
      .split('\n')
      .filter(line => /\berror\b/.test(line))
      .join('\n');
  };
  const mistake = { file: 'src/lib.rs', from: 'ctx.kv_delete', to: 'ctx.kv_remove', says: /kv_remove/ };
  checks(t, files, look, mistake);
  t.end();
});

t.test('C', { skip: missingToolchain('c') ?? false }, t => {
  const folder = madeIn(t, 'c');
  const pieces = shownOn('c', 'c');
  const bodies = [
    pieceOf(pieces, /^PH_TRY/).replace(/^/, 'const int slot = 3;\n'),
    pieceOf(pieces, /^const ph_text key/),
    ...sectionsOf(pieceOf(pieces, /^\/\/ Requests/)),
  ];
  const functions = bodies.map((code, k) => {
    const declares = code.includes('&file,') && !code.includes('ph_file file;') ? 'ph_file file = {0};\n' : '';
    return `ph_code shown_${k}(const ph_context *ctx) {\n${declares}${code}\nreturn PH_OK;\n}`;
  });
  const files = {
    'main.c': [pieceOf(pieces, /^#include "plugin_host.h"/), '#include <assert.h>', ...functions].join('\n\n'),
  };
  const flags = fs.readFileSync(path.join(folder, 'compile_flags.txt'), 'utf8').split('\n').filter(Boolean);
  const look = (files: Record<string, string>): string => {
    write(folder, files);
    const strict = ['-Wall', '-Werror', '-Wno-unused-variable', '-Wno-unused-but-set-variable'];
    return said('clang', [...flags, ...strict, '-fsyntax-only', 'main.c'], folder);
  };
  checks(t, files, look, { file: 'main.c', from: 'ph_kv_delete', to: 'ph_kv_remove', says: /ph_kv_remove/ });
  t.end();
});
