import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { nameResolver } from '../../src/host/guarded-agent.ts';
import { guardedCalls } from '../../src/host/guarded-calls.ts';
import { callApi } from '../../src/messaging/messenger-http.ts';
import { telegramChannel } from '../../src/messaging/telegram.ts';
import { vkChannel } from '../../src/messaging/vk.ts';
import { callerPlugin, callHost } from '../support/caller.ts';
import { startVk, vkPost, vkUpdate } from '../support/messengers.ts';
import { type Names, startNameServer } from '../support/name-server.ts';
import { buildExample } from '../support/sdk.ts';
import { type Json, startTestService } from '../support/service.ts';

type Teardown = { teardown(fn: () => unknown): void };
const KEY = 'events.private_ranges';
const PATH = '/events/subscriptions';
/** For calls that are answered: 20 MiB take their time on a busy machine. */
const PATIENCE_MS = 120_000;
const NAMES: Names = {
  'inside.test': ['127.0.0.1'],
  'metadata.test': ['169.254.169.254'],
  // Only this address is allowed; the next one is not.
  'mixed.test': ['127.0.0.1', '10.0.0.1'],
  'half-public.test': ['93.184.216.34', '127.0.0.1'],
};

/** A server on every address of this machine that counts who comes. */
async function serve(t: Teardown, handle: http.RequestListener) {
  const seen = { connections: 0 };
  const server = http.createServer(handle);
  server.on('connection', () => seen.connections++);
  server.listen(0);
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, seen };
}

async function callsOf(t: Teardown, privateRanges: string[], configured: string[] = []) {
  const dns = await startNameServer(NAMES);
  t.teardown(() => dns.close());
  const calls = guardedCalls({
    privateRanges,
    rangesKey: KEY,
    configured,
    resolve: nameResolver([dns.address]),
    callMs: PATIENCE_MS,
  });
  t.teardown(() => calls.close());
  return calls;
}

const GET = (signal = AbortSignal.timeout(PATIENCE_MS)) => ({
  method: 'GET' as const,
  headers: {},
  body: null,
  signal,
  bytesMax: 1000,
});

t.test('a call of the service reaches no inner address, except in ranges the operator lists', async t => {
  const { port, seen } = await serve(t, (_, response) => response.end('inside'));
  const strict = await callsOf(t, []);
  const hosts =
    '127.0.0.1 0x7f.1 2130706433 [::1] [::ffff:127.0.0.1] 10.0.0.1 169.254.169.254 inside.test metadata.test mixed.test half-public.test';
  for (const host of hosts.split(' '))
    await t.rejects(
      strict.call(`http://${host}:${port}/`, GET()),
      {
        name: 'AddressRefused',
        message: /not (a )?public.*; an operator may allow its range \(events\.private_ranges\)$/,
      },
      host,
    );
  t.equal(seen.connections, 0);
  const listed = await callsOf(t, ['127.0.0.0/8']);
  for (const host of ['127.0.0.1', '127.0.0.2', 'inside.test'])
    t.equal(Buffer.from((await listed.call(`http://${host}:${port}/`, GET())).bytes).toString(), 'inside', host);
  const { connections } = seen;
  for (const host of ['[::1]', '10.0.0.1', 'metadata.test', 'mixed.test'])
    await t.rejects(listed.call(`http://${host}:${port}/`, GET()), { name: 'AddressRefused' }, host);
  t.equal(seen.connections, connections, 'one address that is not allowed refuses the name');
});

t.test('a call takes no more bytes than it asked for, and messengers hand over files of 20 MiB at most', async t => {
  const most = 20 * 1024 * 1024;
  let announced = false;
  const { port } = await serve(t, (request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://x');
    if (pathname === '/bot1/getFile')
      return void response.end(JSON.stringify({ ok: true, result: { file_path: `${most + 1}` } }));
    const bytes = Number(pathname.split('/').at(-1));
    if (announced) response.setHeader('content-length', bytes);
    response.write('x');
    response.end('x'.repeat(bytes - 1));
  });
  const apiUrl = `http://127.0.0.1:${port}`;
  const calls = await callsOf(t, [], [apiUrl]);
  const telegram = telegramChannel({ apiUrl, http: calls, perSecond: 1, token: '1' });
  const vk = vkChannel({ apiUrl, groupId: '1', http: calls, perSecond: 1, token: '1' });
  const file = { fileType: 'document', name: 'x', mimeType: 'text/plain', size: null } as const;
  const signal = AbortSignal.timeout(PATIENCE_MS);
  for (announced of [false, true]) {
    t.equal((await calls.call(`${apiUrl}/1000`, GET())).bytes.length, 1000);
    await t.rejects(calls.call(`${apiUrl}/1001`, GET()), { message: /larger than 1000 bytes/ });
    t.equal((await vk.download({ ...file, source: `${apiUrl}/${most}` }, signal)).length, most);
    for (const download of [
      () => vk.download({ ...file, source: `${apiUrl}/${most + 1}` }, signal),
      () => telegram.download({ ...file, source: 'any' }, signal),
    ])
      await t.rejects(download, { message: /larger than 20971520 bytes|could not be fetched/ });
  }
});

t.test('a literal address the operator has configured needs no range, and allows no other address', async t => {
  const { port } = await serve(t, (_, response) => response.end('api'));
  const calls = await callsOf(t, [], [`http://127.0.0.1:${port}/`]);
  t.equal((await calls.call(`http://127.0.0.1:${port}/`, GET())).status, 200);
  for (const elsewhere of [`http://127.0.0.2:${port}/`, `http://127.0.0.1:${port + 1}/`, `http://inside.test:${port}/`])
    await t.rejects(calls.call(elsewhere, GET()), { name: 'AddressRefused' }, elsewhere);
});

t.test(
  'a redirect of a call is an answer; one of a download is followed three times and checked each time',
  async t => {
    const other = await serve(t, (_, response) => response.end('inside'));
    const { port } = await serve(t, (request, response) => {
      const url = new URL(request.url ?? '', 'http://x');
      const to = url.searchParams.get('to');
      const n = Number(url.searchParams.get('n') ?? 0);
      if (to !== null) return void response.writeHead(302, { location: to }).end();
      if (n > 0) return void response.writeHead(302, { location: `/?n=${n - 1}` }).end();
      response.end(url.pathname === '/' ? 'file' : url.pathname);
    });
    const base = `http://127.0.0.1:${port}`;
    const calls = await callsOf(t, [], [base]);
    const answer = await calls.call(`${base}/?n=1`, GET());
    t.same([answer.status, answer.header('location')], [302, '/?n=0']);
    const download = async (path: string): Promise<string> =>
      Buffer.from(await calls.download(`${base}${path}`, 1000, AbortSignal.timeout(PATIENCE_MS))).toString();
    t.equal(await download('/?n=3'), 'file');
    await t.rejects(download('/?n=4'), { message: 'more than 3 redirects' });
    const raw = encodeURIComponent(Buffer.from('/мир').toString('latin1'));
    t.equal(await download(`/?to=${raw}`), '/%D0%BC%D0%B8%D1%80', 'bytes outside ASCII are asked for as they came');
    await t.rejects(download(`/?to=https://127.0.0.2:${other.port}/`), { name: 'AddressRefused' });
    await t.rejects(download('/?to=https://169.254.169.254/latest'), { name: 'AddressRefused' });
    for (const to of [`http://127.0.0.1:${other.port}/`, 'http://example.org/', 'file:///etc/passwd'])
      await t.rejects(download(`/?to=${encodeURIComponent(to)}`), { message: 'the address is not encrypted' }, to);
    await t.rejects(download('/?to=http://'), { message: /redirects to a text that is not a URL/ });
    await t.rejects(calls.download(`${base}/`, 3, AbortSignal.timeout(PATIENCE_MS)), {
      message: 'the answer is larger than 3 bytes',
    });
    t.equal(other.seen.connections, 0);
  },
);

t.test('forms of a messenger travel whole, with their boundary, and an answer that does not come says so', async t => {
  const { port } = await serve(t, async (request, response) => {
    if (request.url === '/silent') return;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const type = request.headers['content-type'] ?? '';
    const form = await new Response(new Uint8Array(Buffer.concat(chunks)), {
      headers: { 'content-type': type },
    }).formData();
    const file = form.get('file');
    response.writeHead(200, { 'retry-after': '3' });
    response.end(
      JSON.stringify({
        id: form.get('id'),
        file: file instanceof File ? [file.name, file.type, await file.text()] : null,
      }),
    );
  });
  const base = `http://127.0.0.1:${port}`;
  const calls = await callsOf(t, [], [base]);
  const form = new FormData();
  form.set('id', '7');
  form.set('file', new Blob(['содержимое'], { type: 'text/plain' }), 'a.txt');
  t.same(await callApi(calls, base, form, AbortSignal.timeout(PATIENCE_MS)), {
    status: 200,
    json: { id: '7', file: ['a.txt', 'text/plain', 'содержимое'] },
    retryAfterMs: 3000,
  });
  t.match(await callApi(calls, base, new URLSearchParams({ id: 'ü' }), AbortSignal.timeout(PATIENCE_MS)), {
    json: { id: 'ü', file: null },
  });
  await t.rejects(callApi(calls, `${base}/silent`, null, AbortSignal.timeout(100)), { message: 'no answer in time' });
});

t.test('an event webhook reaches no private address, and its delivery names what an operator may allow', async t => {
  let redirectTo = '';
  const { port, seen } = await serve(t, (_, response) => {
    if (redirectTo === '') response.end();
    else response.writeHead(302, { location: redirectTo }).end();
  });
  const dns = await startNameServer(NAMES);
  t.teardown(() => dns.close());
  const s = await startTestService({ BOT_NETWORK_NAME_SERVERS: dns.address });
  t.teardown(() => s.stop());
  await s.install(callerPlugin({ id: 'one', requirements: [{ kind: 'events' }] }));
  for (const host of ['127.0.0.1', '2130706433', '[::1]', '169.254.169.254', '10.0.0.1']) {
    const refused = await s.admin('POST', PATH, { name: 'x', url: `http://${host}:${port}/` });
    t.equal(refused.status, 422, host);
    t.match(refused.json.errors, [
      {
        pointer: '/url',
        message: /is not a public address; an operator may allow its range \(events\.private_ranges\)/,
      },
    ]);
  }
  const failed = async (host: string, service = s): Promise<string> => {
    const { json } = await service.admin('POST', PATH, { name: host, url: `http://${host}:${port}/` });
    await callHost(service, 'one', [['event_publish', 'e', '{}']]);
    for (let k = 0; ; k++) {
      const [first] = (await service.admin('GET', `${PATH}/${json.id}/deliveries?state=waiting`)).json.items as Json[];
      if (first !== undefined && Number(first.attempts) > 0) {
        await service.admin('DELETE', `${PATH}/${json.id}`);
        return String(first.last_error);
      }
      if (k === 300) throw new Error(`no attempt: ${JSON.stringify(first)}`);
      await new Promise(r => setTimeout(r, 50));
    }
  };
  for (const host of ['inside.test', 'metadata.test', 'mixed.test', 'half-public.test'])
    t.equal(
      await failed(host),
      `the subscriber was not reached (${host} resolves to an address that is not public; an operator may allow its range (${KEY}))`,
    );
  const { json } = await s.admin('POST', PATH, { name: 'moves', url: 'https://subscriber.example.org/' });
  t.equal(
    (await s.admin('PATCH', `${PATH}/${json.id}`, { url: `http://127.0.0.1:${port}/` })).status,
    422,
    'nor by a change',
  );
  t.equal(seen.connections, 0, 'no connection was made');

  const listed = await startTestService({
    BOT_NETWORK_NAME_SERVERS: dns.address,
    BOT_EVENTS_PRIVATE_RANGES: '127.0.0.1/32',
  });
  t.teardown(() => listed.stop());
  await listed.install(callerPlugin({ id: 'one', requirements: [{ kind: 'events' }] }));
  t.match(await failed('mixed.test', listed), /mixed\.test resolves to an address that is not public/);
  t.equal(seen.connections, 0);
  const trap = await serve(t, (_, response) => response.end());
  redirectTo = `http://127.0.0.1:${trap.port}/`;
  t.equal(await failed('inside.test', listed), 'the subscriber answered 302');
  t.same([seen.connections > 0, trap.seen.connections], [true, 0], 'a redirect is not followed, wherever it leads');
});

t.test('a file that is sent by a messenger is fetched from no inner address', async t => {
  const vk = await startVk(t);
  const seen = { connections: 0 };
  const inside = net.createServer(socket => {
    seen.connections++;
    socket.destroy();
  });
  inside.listen(0);
  await once(inside, 'listening');
  t.teardown(() => inside.close());
  const { port } = inside.address() as AddressInfo;
  const dns = await startNameServer(NAMES);
  t.teardown(() => dns.close());
  const s = await startTestService({ ...vk.env(), BOT_NETWORK_NAME_SERVERS: dns.address });
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  await s.install(await buildExample('menu'), { dishes: 'soup' });
  const hosts = ['127.0.0.2', '[::1]', '169.254.169.254', 'inside.test', 'mixed.test'];
  for (const [k, host] of hosts.entries()) {
    const file = `https://${host}:${port}/secret`;
    t.equal((await vkPost(s.base, vkUpdate(`e${k}`, '/menu', { from: 20 + k, chat: 20 + k, file }))).status, 200);
  }
  const shown = await vk.until(hosts.length);
  t.same(
    shown.map(m => m.file),
    hosts.map(() => null),
  );
  for (const { text } of shown) t.notMatch(text, /Today/, text);
  t.equal(seen.connections, 0);
});
