import { assemble, hostImports, manifestOf, withManifest } from '../test/support/wat.ts';
import { install, memoryMb, servingPid, startHost } from './host.ts';
import { buildLanguagePlugins, type LanguagePlugin } from './plugins/build.ts';

const BUDGET_MB = 2048;
const ROUNDS = 3;
/** In the data of the Go module; each copy gets another text of the same length, so that no two modules are equal. */
const TEXT = 'Hello, ';

export type ManyPlugins = {
  plugins: number;
  go: number;
  called: number;
  failed: string[];
  mostMb: number;
  budgetMb: number;
};

const small = (id: string, k: number): Uint8Array =>
  withManifest(
    assemble(`(module ${hostImports('respond')} (memory (export "memory") 1) (data (i32.const 64) "${String(k).padStart(6, '0')}")
      (func (export "plugin_handle") (result i32)
        (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 64) (i32.const 6))) (i32.const 0)))`),
    manifestOf({ id }),
  );

/** A copy of the Go plugin with an id and a text of its own. */
function goCopy({ bytes, id }: LanguagePlugin, copy: string, k: number): Uint8Array {
  if (bytes === null) throw new Error('Go is missing');
  const own = Buffer.from(bytes);
  for (let at = own.indexOf(TEXT); at >= 0; at = own.indexOf(TEXT, at + 1))
    own.write(`H${String(k).padStart(5, '0')} `, at, 'latin1');
  for (let at = own.indexOf(id); at >= 0; at = own.indexOf(id, at + 1)) own.write(copy, at, 'latin1');
  return own;
}

/** Many installed plugins, a fifth of them in Go, all called in turn on a host with a small memory budget. */
export async function manyPlugins(directory: string, count: number): Promise<ManyPlugins> {
  const go = (await buildLanguagePlugins()).find(p => p.language === 'go');
  if (go === undefined || go.bytes === null) throw new Error(`Go cannot be built here: ${go?.missing}`);
  const host = await startHost(directory, { BOT_EXECUTION_MEMORY_BUDGET_MB: String(BUDGET_MB) });
  const r: ManyPlugins = { plugins: count, go: 0, called: 0, failed: [], mostMb: 0, budgetMb: BUDGET_MB };
  const serving = servingPid(host);
  const watch = setInterval(() => {
    r.mostMb = Math.max(r.mostMb, memoryMb(serving));
  }, 50);
  try {
    const paths: string[] = [];
    for (let k = 0; k < count; k++) {
      const isGo = k % 5 === 0;
      // Of the length of the id it replaces.
      const id = isGo ? `go-${String(k).padStart(go.id.length - 3, '0')}` : `small-${k}`;
      if (isGo) r.go++;
      await install(host.port, isGo ? goCopy(go, id, k) : small(id, k));
      paths.push(isGo ? `${id}/greet` : `${id}/run`);
    }
    for (let round = 0; round < ROUNDS; round++)
      for (const path of paths) {
        const answer = await fetch(`http://127.0.0.1:${host.port}/api/triggers/http/${path}`);
        const text = await answer.text();
        r.called++;
        if (answer.status !== 200) r.failed.push(`${path} ${answer.status} ${text.slice(0, 200)}`);
      }
  } finally {
    clearInterval(watch);
    await host.stop();
  }
  return r;
}
