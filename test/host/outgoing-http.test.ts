import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import zlib from 'node:zlib';
import t from 'tap';
import { isPublicAddress } from '../../src/base/ip-address.ts';
import { type CallAnswer, callerPlugin, callHost, type ScriptedCall } from '../support/caller.ts';
import { type Names, startNameServer } from '../support/name-server.ts';
import { type Json, startTestService, type TestService } from '../support/service.ts';

const HTTP = [{ kind: 'network', description: 'Weather' }];
type Teardown = { teardown(fn: () => unknown): void };
type Handler = (request: http.IncomingMessage, response: http.ServerResponse, body: Buffer) => void;

/** A server on every address of this machine that counts who comes. */
async function serve(t: Teardown, handle: Handler = (_, r) => r.end('inside')) {
  const seen = { connections: 0, closed: 0, requests: [] as string[] };
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    seen.requests.push(`${request.method} ${request.url}`);
    handle(request, response, Buffer.concat(chunks));
  });
  server.on('connection', socket => {
    seen.connections++;
    socket.on('close', () => seen.closed++);
    socket.on('error', () => {});
  });
  server.listen(0);
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, seen };
}

async function world(t: Teardown, network: Json | null, names: Names = {}, env: Record<string, string> = {}) {
  const dns = await startNameServer(names);
  t.teardown(() => dns.close());
  const s = await startTestService({ BOT_NETWORK_NAME_SERVERS: dns.address, ...env });
  t.teardown(() => s.stop());
  await install(s, 'caller', network);
  const ask = async (order: Record<string, unknown>, body = ''): Promise<CallAnswer> =>
    (await callHost(s, 'caller', [['http_request', JSON.stringify(order), body]]))[0] as CallAnswer;
  return { s, ask, dns };
}

const install = (s: TestService, id: string, network: Json | null): Promise<unknown> =>
  s.install(callerPlugin({ id, requirements: HTTP }), network === null ? {} : { network });
const said = (a: CallAnswer): [number, string] => [a.code, a.text];
const LOOPBACK = { private: ['127.0.0.1'] };

t.test('a plugin sends requests and gets status, headers and body', async t => {
  const { port, seen } = await serve(t, (request, response, body) => {
    response.writeHead(418, [
      ['Content-Type', 'text/x-echo'],
      ['X-Two', 'a'],
      ['X-Two', 'b'],
      ['Set-Cookie', 'a=1'],
      ['Set-Cookie', 'b=2; Path=/'],
    ]);
    response.end(
      JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body: body.toString() }),
    );
  });
  const { ask } = await world(t, LOOPBACK);
  const a = await ask(
    {
      method: 'post',
      url: `http://127.0.0.1:${port}/a?b=ü#c`,
      headers: { 'Content-Type': 'text/plain', 'X-Own': 'é' },
    },
    'Привет',
  );
  const head = JSON.parse(a.text) as { status: number; headers: Record<string, string>; url: string };
  t.equal(head.status, 418);
  t.match(head.headers, { 'content-type': 'text/x-echo', 'x-two': 'a, b', 'set-cookie': 'a=1\nb=2; Path=/' });
  t.equal(head.url, `http://127.0.0.1:${port}/a?b=%C3%BC`);
  const echo = JSON.parse(a.body.toString()) as { headers: Record<string, string> };
  t.match(echo, { method: 'POST', url: '/a?b=%C3%BC', body: 'Привет' });
  t.match(echo.headers, {
    host: `127.0.0.1:${port}`,
    'user-agent': 'plugin-host',
    'content-type': 'text/plain',
    'x-own': 'é',
  });
  for (let k = 0; k < 5; k++) await ask({ url: `http://127.0.0.1:${port}/` });
  t.equal(seen.connections, 1, 'one connection serves all executions');
});

t.test('no private address can be reached, in whatever notation', async t => {
  const { port, seen } = await serve(t);
  let turn = 0;
  const { ask, dns } = await world(t, null, {
    'inside.test': ['127.0.0.1'],
    'metadata.test': ['169.254.169.254'],
    'private.test': ['10.0.0.1', '192.168.0.1'],
    'mixed.test': ['127.0.0.1', '0.0.0.0'],
    // A public address for the first lookup, a private one for the connection.
    'rebind.test': () => (turn++ === 0 ? ['127.0.0.1'] : ['127.0.0.2']),
  });
  const hosts =
    `127.0.0.1 127.1 127.0.1 0177.0.0.1 0x7f.0.0.1 0x7f.1 2130706433 0x7f000001 017700000001 127.0.0.2 127.255.255.254 0.0.0.0 0 0x0
    10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 192.0.0.192 198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255
    [::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b:1::7f00:1] [2002:7f00:1::] [2001:0:7f00:1::] [2001:db8::1] [fe80::1] [fc00::1]
    [fd00:ec2::254] [ff02::1] [fec0::1] [100::1] [5f00::1] ①②⑦.⓪.⓪.① 127。0。0。1 inside.test INSIDE.test inside.test. metadata.test private.test mixed.test rebind.test`.split(
      /\s+/,
    );
  for (const host of hosts) {
    const a = await ask({ url: `http://${host}:${port}/latest/meta-data` });
    t.equal(a.code, -3, host);
    t.match(a.text, /not (a )?public/, host);
    if (host.endsWith('.test')) t.notMatch(a.text, /\d\.\d/, 'what a name leads to is not told');
  }
  for (const host of ['localhost', 'localhost.', 'nowhere.test']) {
    const a = await ask({ url: `http://${host}:${port}/` });
    t.ok(a.code < 0, `${host}: ${a.text}`);
  }
  t.equal(seen.connections, 0, 'no connection was made');
  t.ok(dns.asked.includes('rebind.test'));
});

t.test('a name is refused if one of its addresses is refused, even if the administrator allows another', async t => {
  const { port, seen } = await serve(t);
  const { ask } = await world(t, LOOPBACK, {
    'allowed.test': ['127.0.0.1'],
    'mixed.test': ['127.0.0.1', '10.0.0.1'],
    'before.test': ['10.0.0.1', '127.0.0.1'],
    'public.test': ['93.184.216.34', '192.168.0.1'],
  });
  t.equal((await ask({ url: `http://allowed.test:${port}/` })).body.toString(), 'inside');
  for (const host of ['mixed.test', 'before.test', 'public.test'])
    t.same(said(await ask({ url: `http://${host}:${port}/` })), [
      -3,
      `${host} resolves to an address that is not public; an administrator may allow its range (network.private)`,
    ]);
  t.equal(seen.connections, 1);
});

t.test('special-purpose ranges of the registries are not public; the addresses next to them are', t => {
  const edges: Array<[string, boolean]> = [
    ['9.255.255.255', true],
    ['11.0.0.0', true],
    ['100.63.255.255', true],
    ['100.128.0.0', true],
    ['172.15.255.255', true],
    ['172.32.0.0', true],
    ['169.253.255.255', true],
    ['192.167.255.255', true],
    ['198.17.255.255', true],
    ['198.20.0.0', true],
    ['223.255.255.255', true],
    ['2a00:1450::1', true],
    ['2001:200::1', true],
    ['3ffe::1', true],
    ['2001:1ff::1', false],
    ['::ffff:8.8.8.8', false],
    ['64:ff9b::808:808', false],
    ['4000::1', false],
    ['1fff::1', false],
    ['not an address', false],
  ];
  for (const [address, is] of edges) t.equal(isPublicAddress(address), is, address);
  t.end();
});

t.test(
  'at most five redirects are followed, each target is checked, and credentials are not sent to another host',
  async t => {
    const other = await serve(t, (request, response) => response.end(JSON.stringify(request.headers)));
    const { port, seen } = await serve(t, (request, response, body) => {
      const url = new URL(request.url ?? '', 'http://x');
      const n = Number(url.searchParams.get('n') ?? 0);
      const to = url.searchParams.get('to');
      if (to !== null)
        return response.writeHead(Number(url.searchParams.get('status') ?? 302), { Location: to }).end('moved');
      if (n > 0) return response.writeHead(302, { Location: `/?n=${n - 1}` }).end();
      if (url.pathname === '/endless') return response.writeHead(302, { Location: '/?n=1' }).write('moved');
      if (url.pathname.startsWith('/%')) return response.end(request.url);
      response.end(
        JSON.stringify({
          method: request.method,
          body: body.toString(),
          auth: request.headers.authorization ?? null,
          type: request.headers['content-type'] ?? null,
        }),
      );
    });
    const { ask } = await world(t, LOOPBACK);
    const base = `http://127.0.0.1:${port}`;
    const headers = { Authorization: 'Bearer secret', Cookie: 'a=b', 'X-Own': 'stays' };
    t.equal((await ask({ url: `${base}/?n=5` })).body.toString(), '{"method":"GET","body":"","auth":null,"type":null}');
    t.same(said(await ask({ url: `${base}/?n=6` })), [-3, 'more than 5 redirects']);
    t.match((await ask({ url: `${base}/?n=2`, headers })).body.toString(), /"auth":"Bearer secret"/);
    // A redirect whose body does not end is followed.
    t.match((await ask({ url: `${base}/endless`, headers })).body.toString(), /"auth":"Bearer secret"/);
    // Bytes outside ASCII are asked for as they came.
    const raw = (bytes: Buffer): string => encodeURIComponent(bytes.toString('latin1'));
    for (const [location, asked] of [
      [Buffer.from('/мир?q=é'), '/%D0%BC%D0%B8%D1%80?q=%C3%A9'],
      [Buffer.from('/%D0%BC%ff'), '/%D0%BC%ff'],
      [Buffer.from([0x2f, 0xe9]), '/%E9'],
    ] as const)
      t.equal((await ask({ url: `${base}/?to=${raw(location)}` })).body.toString(), asked);
    const elsewhere = await ask({ url: `${base}/?to=http://127.0.0.1:${other.port}/`, headers });
    const got = JSON.parse(elsewhere.body.toString()) as Record<string, string>;
    t.same([got.authorization, got.cookie, got['x-own']], [undefined, undefined, 'stays']);
    const post = (status: number) =>
      ask({ method: 'POST', url: `${base}/?status=${status}&to=/`, headers: { 'content-type': 'text/plain' } }, 'body');
    for (const status of [301, 302, 303])
      t.equal(
        (await post(status)).body.toString(),
        '{"method":"GET","body":"","auth":null,"type":null}',
        String(status),
      );
    for (const status of [307, 308])
      t.equal(
        (await post(status)).body.toString(),
        '{"method":"POST","body":"body","auth":null,"type":"text/plain"}',
        String(status),
      );
    const before = other.seen.connections;
    for (const to of [
      `http://127.0.0.2:${other.port}/`,
      `http://[::1]:${other.port}/`,
      `http://[::ffff:127.0.0.2]:${other.port}/`,
      'http://169.254.169.254/latest',
      `//0x7f000002:${other.port}/`,
      'file:///etc/passwd',
      'http://user:word@127.0.0.1/',
      'http://',
    ])
      t.equal((await ask({ url: `${base}/?to=${encodeURIComponent(to)}` })).code, -3, to);
    t.equal(other.seen.connections, before);
    t.same(
      said(await ask({ url: `${base}/?to=file:///etc/passwd` })),
      [-3, `the redirect target of 127.0.0.1:${port} begins with file:; http: and https: are allowed`],
      'a wrong address is named as whose it is',
    );
    t.ok(seen.requests.length > 20);
  },
);

t.test('with an allow list only its hosts are reached', async t => {
  const { port } = await serve(t, (request, response) => response.end(request.headers.host));
  const names = [
    'api.test',
    'a.api.test',
    'wide.test',
    'a.wide.test',
    'a.b.wide.test',
    'port.test',
    'far.test',
    'xapi.test',
    'evilwide.test',
  ];
  const { ask } = await world(
    t,
    { hosts: ['api.test', '*.wide.test', `port.test:${port}`, 'far.test:1'], private: ['127.0.0.0/8'] },
    Object.fromEntries(names.map(n => [n, ['127.0.0.1']])),
  );
  const reached: string[] = [];
  for (const host of ['API.test', 'api.test.', ...names, '127.0.0.1']) {
    const a = await ask({ url: `http://${host}:${port}/` });
    if (a.code > 0) reached.push(host);
    else t.match(said(a), [-3, /is not among the hosts this plugin may reach \(network\.hosts/]);
  }
  t.same(reached, ['API.test', 'api.test.', 'api.test', 'a.wide.test', 'a.b.wide.test', 'port.test']);
});

t.test('answers are bounded in size and time, packed ones by what comes out', async t => {
  const bomb = zlib.gzipSync(Buffer.alloc(11 * 1024 * 1024));
  const { port, seen } = await serve(t, (request, response) => {
    const send = (coding: string, bytes: Buffer) => response.writeHead(200, { 'Content-Encoding': coding }).end(bytes);
    if (request.url === '/large') return response.end(Buffer.alloc(10 * 1024 * 1024 + 1));
    if (request.url === '/whole') return response.end(Buffer.alloc(9 * 1024 * 1024, 'x'));
    if (request.url === '/bomb') return send('gzip', bomb);
    if (request.url === '/gzip') return send('gzip', zlib.gzipSync('unpacked'));
    if (request.url === '/br') return send('br', zlib.brotliCompressSync('unpacked'));
    if (request.url === '/deflate') return send('deflate', zlib.deflateSync('unpacked'));
    if (request.url === '/zstd') return send('zstd', zlib.zstdCompressSync('unpacked'));
    if (request.url === '/identity') return send('identity', Buffer.from('unpacked'));
    if (request.url === '/bare') return send('deflate', zlib.deflateRawSync('unpacked'));
    if (request.url === '/twice') return send('gzip, br', zlib.brotliCompressSync(zlib.gzipSync('unpacked')));
    if (request.url === '/twice-bomb') return send('gzip, br', zlib.brotliCompressSync(bomb));
    if (request.url === '/odd') return send('x-odd', Buffer.from('as it is'));
    if (request.url === '/nothing') return response.writeHead(204, { 'Content-Encoding': 'gzip' }).end();
    if (request.url === '/broken') return send('gzip', Buffer.from('this is not gzip'));
    if (request.url === '/half') {
      response.writeHead(200, { 'Content-Length': '100' }).write('half');
      return setTimeout(() => response.destroy(), 50);
    }
    if (request.url === '/slow') return response.writeHead(200).write('begun');
    return;
  });
  const { ask, s } = await world(t, LOOPBACK);
  const get = (path: string, more: Record<string, unknown> = {}) =>
    ask({ url: `http://127.0.0.1:${port}/${path}`, ...more });
  t.match(said(await get('large')), [-4, /^the answer is larger than 10485760 bytes/]);
  t.match(said(await get('bomb')), [-4, /^the answer is larger than/]);
  t.match(said(await get('twice-bomb')), [-4, /^the answer is larger than/]);
  const odd = await get('odd');
  t.equal(odd.body.toString(), 'as it is', 'a coding that is not known is left to the plugin');
  t.match(odd.text, '"content-encoding":"x-odd"');
  t.equal((await get('whole')).body.length, 9 * 1024 * 1024);
  for (const coding of ['gzip', 'br', 'deflate', 'zstd', 'identity', 'bare', 'twice']) {
    const a = await get(coding);
    t.equal(a.body.toString(), 'unpacked', coding);
    t.notMatch(a.text, 'content-encoding');
  }
  const raw = await get('gzip', { headers: { 'accept-encoding': 'gzip' } });
  t.equal(zlib.gunzipSync(raw.body).toString(), 'unpacked', 'who asks for packed bytes gets them');
  t.match(JSON.parse((await get('gzip', { method: 'HEAD' })).text), { status: 200 });
  t.match(JSON.parse((await get('nothing')).text), { status: 204 });
  t.equal((await get('broken')).code, -5);
  t.equal((await get('half')).code, -5);
  for (const path of ['slow', 'never'])
    t.same(said(await get(path, { timeout_ms: 100 })), [-6, 'the answer did not come in time']);
  t.match(said(await ask({ url: 'http://127.0.0.1:1/' })), [-5, 'the request failed (ECONNREFUSED)']);
  t.equal((await get('slow'))?.code, -6, 'before the execution itself is out of time');
  for (let k = 0; k < 100 && seen.closed < seen.connections - 1; k++) await new Promise(r => setTimeout(r, 20));
  t.ok(seen.connections - seen.closed <= 1, 'connections of what was ended are closed');
  t.equal(s.service.executor.inFlight, 0);
});

t.test('wrong requests are refused with what would be right, and none is sent without the permission', async t => {
  const { port, seen } = await serve(t);
  const { ask, s } = await world(t, LOOPBACK);
  const url = `http://127.0.0.1:${port}/`;
  const wrong: Array<[Record<string, unknown>, string | RegExp]> = [
    [{}, /^\/url /],
    [{ url: 'nonsense' }, '/url is not a URL like https://api.example.org/path'],
    [{ url: 'ftp://a.test/' }, '/url begins with ftp:; http: and https: are allowed'],
    [{ url: 'http://a:b@a.test/' }, '/url contains a user name or password; send them in a header'],
    [{ url, method: 'CONNECT' }, '/method CONNECT is not allowed'],
    [{ url, method: 'G T' }, '/method must be a method like GET'],
    [{ url, headers: { Host: 'x' } }, '/headers/host is set by the host itself'],
    [{ url, headers: { 'Transfer-Encoding': 'chunked' } }, '/headers/transfer-encoding is set by the host itself'],
    [{ url, headers: { 'a b': 'x' } }, '/headers has "a b", which is not a valid header name'],
    [{ url, headers: { a: 'x\r\nb: y' } }, '/headers/a contains a character that is not allowed in a header'],
    [{ url, headers: { a: 'Ж' } }, '/headers/a contains a character that is not allowed in a header'],
    [{ url, timeout_ms: 0 }, /^\/timeout_ms /],
    [{ url, timeout: 5 }, /timeout/],
  ];
  for (const [order, text] of wrong) t.match(said(await ask(order)), [-3, text]);
  t.same(said(await ask({ url }, 'body')), [-3, 'a GET request has no body']);
  const [broken] = await callHost(s, 'caller', [['http_request', '{', '']]);
  t.match(broken?.text, /^the request is not JSON/);
  await s.install(callerPlugin({ id: 'none' }));
  const calls: ScriptedCall[] = [['http_request', JSON.stringify({ url }), '']];
  t.same(said((await callHost(s, 'none', calls))[0] as CallAnswer), [-1, 'permission denied']);
  t.equal(seen.connections, 0);
});

t.test(
  'the rules of a plugin are checked when it is installed, shown, kept, and changed without a restart',
  async t => {
    const { port } = await serve(t);
    const { ask, s } = await world(t, null);
    const named = { kind: 'network', config: [{ name: 'network' }] };
    const misnamed = await s.upload(callerPlugin({ id: 'named', requirements: [named] }));
    t.match(misnamed.json.errors, [
      { message: /\/requirements\/0\/config\/0\/name: "network" is the name of a section/ },
    ]);
    const url = `http://127.0.0.1:${port}/`;
    t.equal((await ask({ url })).code, -3);
    const where = '/plugins/caller';
    const { wasm_key } = (await s.admin('GET', where)).json.installed as { wasm_key: string };
    const again = (network: unknown) => s.admin('POST', `${where}/install`, { wasm_key, config: { network } });
    t.equal((await again({ private: ['127.0.0.1/32', '10.0.0.0/8'] })).status, 200);
    t.ok((await ask({ url })).code > 0, 'at once');
    t.equal((await s.admin('POST', `${where}/install`, { wasm_key, config: {} })).status, 200);
    t.ok((await ask({ url })).code > 0, 'what is left out stays');
    t.same((await s.admin('GET', where)).json.network, { hosts: [], private: ['127.0.0.1/32', '10.0.0.0/8'] });
    t.equal((await again({ private: [] })).status, 200);
    t.equal((await ask({ url })).code, -3, 'and a connection that is open is not used any more');
    const bad: Array<[unknown, string]> = [
      ['any', '/config/network'],
      [{ host: [] }, '/config/network/host'],
      [{ hosts: 'a.test' }, '/config/network/hosts'],
      [{ hosts: ['https://a.test'] }, '/config/network/hosts/0'],
      [{ hosts: ['a.test', 'a.*.test'] }, '/config/network/hosts/1'],
      [{ hosts: ['a.test:99999'] }, '/config/network/hosts/0'],
      [{ private: ['10.0.0.0/33'] }, '/config/network/private/0'],
      [{ private: ['inside'] }, '/config/network/private/0'],
    ];
    for (const [network, pointer] of bad) t.match((await again(network)).json, { status: 422, errors: [{ pointer }] });
    const uploaded = await s.upload(callerPlugin({ id: 'none' }));
    const refused = await s.admin('POST', '/plugins/none/install', {
      wasm_key: uploaded.json.wasm_key,
      config: { network: {} },
    });
    t.match(refused.json, { status: 422, errors: [{ pointer: '/config/network', message: /does not require HTTP/ }] });
    const { items } = (await s.admin('GET', '/audit?limit=20')).json as { items: Json[] };
    t.ok(
      items.some(i => JSON.stringify(i).includes('"10.0.0.0/8"')),
      'the audit log tells',
    );
  },
);
