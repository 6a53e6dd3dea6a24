// Servers to compare with, each in a process of its own: `bare` answers a constant, `extism` runs the same plugin logic on the
// Extism SDK with a fresh plugin per request, `extism-wasi` with WASI for it, `extism-pool` on a pool of plugins in threads of
// their own, which are used again and again. `by-hand` is the handler one would write oneself for the sample and for the triggers that
// ask the key-value store: uWebSockets.js and `pg`, the same answers, the same statements, no sandbox.
// Usage: peer.ts bare|by-hand|extism|extism-wasi|extism-pool PORT [MODULE | DATABASE]

import { App } from 'uWebSockets.js';
import fs from 'node:fs';
import os from 'node:os';

const [kind, port, module] = process.argv.slice(2);

async function serveByHand(): Promise<void> {
  const { default: pg } = await import('pg');
  const pool = new pg.Pool({ connectionString: module });
  const get = {
    name: 'get',
    text: 'SELECT value FROM plugin_kv WHERE plugin_id = $1 AND key = $2 AND (expires_at IS NULL OR expires_at > now())',
  };
  const set = {
    name: 'set',
    text: `INSERT INTO plugin_kv (plugin_id, key, value, expires_at)
           VALUES ($1, $2, $3, CASE WHEN $4::int = 0 THEN NULL ELSE now() + make_interval(secs => $4::int) END)
           ON CONFLICT (plugin_id, key) DO UPDATE SET value = EXCLUDED.value, expires_at = EXCLUDED.expires_at`,
  };
  const value = Buffer.from('a value of some length for the benchmark');
  app.get('/api/triggers/http/hello/greet', (res, req) => {
    const query = Object.fromEntries(new URLSearchParams(req.getQuery() ?? ''));
    const message = `Hello, ${query.name ?? 'world'}!`;
    const answer = { message, method: 'GET', path: '/greet', query, body: '', principal: null };
    res.writeHeader('Content-Type', 'application/json').end(JSON.stringify(answer));
  });
  for (const [id, sets] of [
    ['kvreads', false],
    ['kvwrites', true],
  ] as const)
    app.get(`/api/triggers/http/${id}/run`, res => {
      let open = true;
      res.onAborted(() => {
        open = false;
      });
      const n = Math.floor(Math.random() * 256);
      const key = `k-${String.fromCharCode(97 + (n & 15), 97 + (n >> 4))}`;
      void (async () => {
        let done = true;
        try {
          await pool.query({ ...get, values: [id, key] });
          if (sets) await pool.query({ ...set, values: [id, key, value, 0] });
        } catch {
          done = false;
        }
        if (!open) return;
        res.cork(() => {
          if (done) res.end(key);
          else res.writeStatus('500 Internal Server Error').end();
        });
      })();
    });
}

const BODY = '{"message":"Hello, world!","method":"GET","path":"/greet","query":{},"body":"","principal":null}';
const app = App();

if (kind === 'bare') {
  app.any('/*', res => {
    res.writeHeader('Content-Type', 'application/json').end(BODY);
  });
} else if (kind === 'by-hand') {
  await serveByHand();
} else {
  const { createPlugin } = await import('@extism/extism');
  const wasm = await WebAssembly.compile(fs.readFileSync(module ?? ''));
  type Plugin = Awaited<ReturnType<typeof createPlugin>>;
  const pooled = kind === 'extism-pool';
  const idle: Plugin[] = [];
  const waiting: Array<(plugin: Plugin) => void> = [];
  for (let k = 0; pooled && k < os.availableParallelism(); k++)
    idle.push(await createPlugin(wasm, { runInWorker: true }));
  const take = (): Plugin | Promise<Plugin> => {
    if (!pooled) return createPlugin(wasm, { useWasi: kind === 'extism-wasi' });
    return idle.pop() ?? new Promise(resolve => waiting.push(resolve));
  };
  const give = async (plugin: Plugin): Promise<void> => {
    if (!pooled) return await plugin.close();
    const next = waiting.shift();
    if (next === undefined) idle.push(plugin);
    else next(plugin);
  };
  app.get('/*', (res, req) => {
    let open = true;
    res.onAborted(() => {
      open = false;
    });
    const headers: Record<string, string> = {};
    req.forEach((k, v) => {
      headers[k] = v;
    });
    const event = JSON.stringify({
      kind: 'http',
      trigger: 'greet',
      http: { method: 'GET', path: '/greet', query: {}, headers, remote_addr: '127.0.0.1', auth: null, params: {} },
    });
    void (async () => {
      const plugin = await take();
      let text: string | null = null;
      try {
        text = (await plugin.call('greet', event))?.text() ?? '';
        await give(plugin);
      } catch {
        // A plugin of a pool that has failed a call fails all later ones: another one takes its place.
        if (pooled) await give(await createPlugin(wasm, { runInWorker: true }));
      }
      if (!open) return;
      res.cork(() => {
        if (text === null) res.writeStatus('500 Internal Server Error').end();
        else res.writeHeader('Content-Type', 'application/json').end(text);
      });
    })();
  });
}
app.listen('127.0.0.1', Number(port), ok => console.log(ok ? 'ready' : 'cannot listen'));
