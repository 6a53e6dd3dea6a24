import path from 'node:path';
import { buildPlugin as buildAssemblyScript } from '../sdk/assemblyscript/build.ts';
import { buildPlugin as buildC } from '../sdk/c/build.ts';
import { buildPlugin as buildGo } from '../sdk/go/build.ts';
import { buildPlugin as buildRust } from '../sdk/rust/build.ts';
import { buildPlugin as buildTypeScript } from '../sdk/typescript/build.ts';
import { attackIsolation, type Input } from '../test/support/attack-isolation.ts';
import { OneLane, rewrite } from '../test/support/one-lane.ts';
import { buildExample } from '../test/support/sdk.ts';
import { missingToolchain } from '../test/support/toolchains.ts';
import { buildLanguagePlugins } from './plugins/build.ts';

/** Shares of the executions: those of Go and TypeScript take longest. */
const SHARES: Readonly<Record<string, number>> = { assemblyscript: 0.35, rust: 0.3, c: 0.05, typescript: 0.2, go: 0.1 };
const DRAWS = 20_000;

const event = (trigger: string, name: string): Input => ({
  event: JSON.stringify({
    kind: 'http',
    trigger,
    http: { method: 'GET', path: `/${trigger}`, query: { name }, headers: { host: 'x' } },
  }),
});
const INPUTS: Input[] = [
  ...['', 'you', 'ö"\\\n', 'x'.repeat(100_000)].map(name => event('greet', name)),
  event('visit', 'you'),
  event('draw', 'you'),
];

export type Isolation = { language: string; executions: number; again: number; leaks: string[]; repeated: number };

/** How many values that several executions drew by chance were drawn more than once. @param member of the answer */
function repeatedNumbers(lane: OneLane, drawing: Input, member: 'numbers' | 'result'): number {
  const drawn = new Set<string>();
  let numbers = 0;
  for (let k = 0; k < DRAWS; k++) {
    const answer: Partial<Record<typeof member, unknown>> = JSON.parse(lane.run(drawing.event, drawing.body));
    lane.release(true);
    const given = answer[member];
    for (const n of Array.isArray(given) ? given : []) {
      numbers++;
      drawn.add(String(n));
    }
  }
  if (numbers !== DRAWS * 2) throw new Error(`${numbers} numbers of ${DRAWS} executions`);
  return numbers - drawn.size;
}

/** Attacks the isolation of the plugins of the benchmark, in every language that can be built here. */
export async function attackLanguages(
  executions: number,
  directory: string,
  next: (below: number) => number,
  missing: (language: string, why: string) => void,
): Promise<Isolation[]> {
  const results: Isolation[] = [];
  const sample = { language: 'assemblyscript', bytes: await buildExample('hello'), missing: '' };
  for (const plugin of [sample, ...(await buildLanguagePlugins())]) {
    if (plugin.bytes === null) {
      missing(plugin.language, plugin.missing);
      continue;
    }
    const module = await rewrite(plugin.bytes, directory);
    const count = Math.ceil(executions * (SHARES[plugin.language] ?? 0));
    const attack = attackIsolation(module, INPUTS, count, next);
    const draws = plugin.language !== 'assemblyscript';
    const lane = new OneLane(module, { fixed: false, recycle: true });
    const repeated = draws ? repeatedNumbers(lane, event('draw', 'you'), 'numbers') : 0;
    results.push({ language: plugin.language, ...attack, repeated });
  }
  return results;
}

const SDK = path.resolve(import.meta.dirname, '../sdk');

/** A case of the conformance plugins. */
const caseInput = (name: string, ...given: unknown[]): Input => ({
  event: JSON.stringify({
    ...{ kind: 'http', trigger: 'run' },
    http: { method: 'POST', path: `/run/${name}`, params: { case: name }, query: {}, headers: { host: 'x' } },
  }),
  body: JSON.stringify(given),
});
/** Cases that need no answer of a host: those that ask for one get "not found", which they word. */
const CASES = [
  caseInput('request'),
  caseInput('large', 100_000),
  caseInput('random'),
  caseInput('clock'),
  caseInput('config', 'title'),
  caseInput('kv_get', 'key'),
  caseInput('kv_list', 'ü 😀'.repeat(1000), '', 10),
  caseInput('kv_increment', 'n', '9007199254740993'),
  caseInput('publish', 'grade.given', { n: 1, list: Array.from({ length: 200 }, (_, n) => n) }),
  caseInput('call', 'double', 'x'.repeat(10_000)),
  caseInput('file_meta', 'none'),
  caseInput('throw', 'thrown by a case'),
  caseInput('no_such_case'),
];

type ConformancePlugin = { language: string; word: string; build(): Promise<Uint8Array> };

/** The conformance plugin of each kit. */
const CONFORMANCE: readonly ConformancePlugin[] = [
  {
    language: 'typescript',
    word: 'ts',
    build: async () => (await buildTypeScript(path.join(SDK, 'typescript/conformance/index.ts'))).module,
  },
  {
    language: 'go',
    word: 'go',
    build: async () => (await buildGo(path.join(SDK, 'go/conformance/main.go'))).module,
  },
  {
    language: 'rust',
    word: 'rust',
    build: async () => (await buildRust(path.join(SDK, 'rust/conformance/src/lib.rs'))).module,
  },
  {
    language: 'c',
    word: 'c',
    build: async () => (await buildC(path.join(SDK, 'c/conformance/main.c'))).module,
  },
  {
    language: 'assemblyscript',
    word: 'as',
    build: () => buildAssemblyScript(path.join(SDK, 'assemblyscript/conformance/index.ts')),
  },
];

/** Attacks the isolation of the conformance plugins, in every language that can be built here. Each gets a fifth of the executions. */
export async function* attackConformance(
  executions: number,
  directory: string,
  next: (below: number) => number,
  missing: (language: string, why: string) => void,
): AsyncGenerator<Isolation> {
  for (const { build, language, word } of CONFORMANCE) {
    const why = missingToolchain(word);
    if (why !== null) {
      missing(language, why);
      continue;
    }
    const module = await rewrite(await build(), directory);
    const attack = attackIsolation(module, CASES, Math.ceil(executions / CONFORMANCE.length), next);
    const lane = new OneLane(module, { fixed: false, recycle: true });
    yield { language, ...attack, repeated: repeatedNumbers(lane, caseInput('random'), 'result') };
  }
}
