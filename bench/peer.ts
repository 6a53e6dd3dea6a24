// Servers to compare with, each in a process of its own: `bare` answers a constant, `extism` runs the same plugin logic on the
// Extism SDK with a fresh plugin per request, `extism-wasi` with WASI for it. Usage: peer.ts bare|extism|extism-wasi PORT [MODULE]

import { App } from 'uWebSockets.js';
import fs from 'node:fs';

const [kind, port, module] = process.argv.slice(2);
const BODY = '{"message":"Hello, world!","method":"GET","path":"/greet","query":{},"body":"","principal":null}';
const app = App();

if (kind === 'bare') {
  app.any('/*', res => {
    res.writeHeader('Content-Type', 'application/json').end(BODY);
  });
} else {
  const { createPlugin } = await import('@extism/extism');
  const wasm = await WebAssembly.compile(fs.readFileSync(module ?? ''));
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
      const plugin = await createPlugin(wasm, { useWasi: kind === 'extism-wasi' });
      const out = await plugin.call('greet', event);
      const text = out?.text() ?? '';
      await plugin.close();
      if (open) res.cork(() => res.writeHeader('Content-Type', 'application/json').end(text));
    })();
  });
}
app.listen('127.0.0.1', Number(port), ok => console.log(ok ? 'ready' : 'cannot listen'));
