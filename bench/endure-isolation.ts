import { attackIsolation } from '../test/support/attack-isolation.ts';
import { OneLane, rewrite } from '../test/support/one-lane.ts';
import { buildExample } from '../test/support/sdk.ts';
import { buildLanguagePlugins } from './plugins/build.ts';

/** Shares of the executions: those of Go and TypeScript take longest. */
const SHARES: Readonly<Record<string, number>> = { assemblyscript: 0.35, rust: 0.3, c: 0.05, typescript: 0.2, go: 0.1 };
const DRAWS = 20_000;

const event = (trigger: string, name: string): string =>
  JSON.stringify({
    kind: 'http',
    trigger,
    http: { method: 'GET', path: `/${trigger}`, query: { name }, headers: { host: 'x' } },
  });
const EVENTS = [
  ...['', 'you', 'ö"\\\n', 'x'.repeat(100_000)].map(name => event('greet', name)),
  event('visit', 'you'),
  event('draw', 'you'),
];

export type Isolation = { language: string; executions: number; again: number; leaks: string[]; repeated: number };

/** How many numbers of several executions were drawn more than once. */
function repeatedNumbers(lane: OneLane): number {
  const drawn = new Set<number>();
  let numbers = 0;
  for (let k = 0; k < DRAWS; k++) {
    const answer: unknown = JSON.parse(lane.run(event('draw', 'you')));
    lane.release(true);
    const given = typeof answer === 'object' && answer !== null && 'numbers' in answer ? answer.numbers : [];
    for (const n of Array.isArray(given) ? given : []) {
      numbers++;
      drawn.add(Number(n));
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
    const attack = attackIsolation(module, EVENTS, count, next);
    const draws = plugin.language !== 'assemblyscript';
    const repeated = draws ? repeatedNumbers(new OneLane(module, { fixed: false, recycle: true })) : 0;
    results.push({ language: plugin.language, ...attack, repeated });
  }
  return results;
}
