import { admin, install } from './host.ts';
import { closedLoop, type Load } from './load.ts';
import { buildLanguagePlugins } from './plugins/build.ts';
import { add, type Bound, median } from './report.ts';

const SAMPLE = '/api/triggers/http/hello/greet';
const BOUNDS: Readonly<Record<string, Bound>> = {
  go: { atLeast: 0.05, aim: 0.1 },
  typescript: { atLeast: 0.17, aim: 0.2 },
  rust: { atLeast: 0.9, aim: 1 },
  c: { atLeast: 0.9, aim: 1 },
};

/** How often a plugin is installed for its first execution: a single one depends on what else the machine does. */
const INSTALLS = 5;

/** The same greeter in several languages, each in turns with the sample; and its first execution after the install. */
export async function languages(port: number, seconds: number, rounds: number): Promise<void> {
  for (const { buildMs, bytes, id, language, missing } of await buildLanguagePlugins()) {
    if (bytes === null) {
      add(`greeter in ${language} / the sample`, 'left out', missing);
      continue;
    }
    const first: number[] = [];
    for (let k = 0; k < INSTALLS; k++) {
      if (k > 0) await admin(port, 'DELETE', `/plugins/${id}`);
      await install(port, bytes);
      first.push(await timeOf(port, id));
    }
    await closedLoop(port, `/api/triggers/http/${id}/greet`, 64, 1);
    const later: number[] = [];
    for (let k = 0; k < 50; k++) later.push(await timeOf(port, id));
    add(
      `greeter in ${language}: size, build`,
      `${Math.ceil(bytes.length / 1024)} KB, ${(buildMs / 1000).toFixed(1)} s`,
    );
    const ratios: Record<'greet' | 'visit', number[]> = { greet: [], visit: [] };
    let failed = 0;
    for (let round = 0; round < rounds; round++) {
      const of = (path: string): Promise<Load> => closedLoop(port, path, 64, seconds);
      const sample = await of(SAMPLE);
      for (const trigger of ['greet', 'visit'] as const) {
        const load = await of(`/api/triggers/http/${id}/${trigger}`);
        failed += load.failed;
        ratios[trigger].push(load.perSecond / sample.perSecond);
      }
    }
    const bound = BOUNDS[language];
    add(
      `greeter in ${language} / the sample`,
      median(ratios.greet).toFixed(3),
      bound === undefined ? `failed ${failed}` : { ...bound, also: `failed ${failed}` },
    );
    add(`the same with kv_get and kv_set / the sample`, median(ratios.visit).toFixed(3));
    add(`first execution after install / later ones`, `${(median(first) / median(later)).toFixed(1)} x`, {
      atMost: 10,
      aim: 3,
      unit: 'x',
    });
  }
}

async function timeOf(port: number, id: string): Promise<number> {
  const at = performance.now();
  const r = await fetch(`http://127.0.0.1:${port}/api/triggers/http/${id}/greet`);
  const text = await r.text();
  if (r.status !== 200) throw new Error(`${id} answered ${r.status}: ${text}`);
  return performance.now() - at;
}
