import http from 'node:http';
import t from 'tap';
import { checkResponseHeaders } from '../../src/abi/response-headers.ts';
import { type Answer, type Json, startTestService, type TestService } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';

const SANDBOX =
  "sandbox allow-scripts allow-forms allow-popups allow-downloads; object-src 'none'; frame-ancestors 'self'";
const lines = (headers: unknown): string[] => {
  const checked = checkResponseHeaders(JSON.stringify(headers), 'p');
  if (!checked.ok) throw new Error(checked.reason);
  const parts = checked.flat.split('\0').slice(0, -1);
  return parts.flatMap((part, k) => (k % 2 === 0 ? [`${part}: ${parts[k + 1]}`] : []));
};
const dropped = (headers: unknown): string[] => {
  const checked = checkResponseHeaders(JSON.stringify({ 'Content-Type': 'text/plain', ...(headers as object) }), 'p');
  if (!checked.ok) throw new Error(checked.reason);
  return checked.dropped;
};

/** Takes the request's body for the headers of its answer, and answers with a page. */
const echoHeaders = (id: string): Uint8Array =>
  watPlugin({
    id,
    imports: ['respond', 'input_len', 'input_read'],
    body: '(data (i32.const 64) "<h1>page</h1>")',
    handle: `(local $n i32) (local.set $n (call $input_len (i32.const 1))) (drop (call $input_read (i32.const 1) (i32.const 1024) (local.get $n)))
      (drop (call $respond (i32.const 200) (i32.const 1024) (local.get $n) (i32.const 64) (i32.const 13))) (i32.const 0)`,
  });
const answer = (s: TestService, headers: unknown, more: Record<string, string> = {}, id = 'echo'): Promise<Answer> =>
  s.trigger(`${id}/run`, { method: 'POST', body: JSON.stringify(headers), headers: more });

t.test(
  'all headers of a plugin are sent but those that act beyond the answer, which are dropped and named',
  async t => {
    const kept = {
      'Content-Type': 'text/plain',
      'Content-Language': 'ru',
      'Content-Disposition': 'attachment',
      ETag: '"1"',
      'Cache-Control': 'no-store',
      'Content-Range': 'bytes 0-1/2',
      Location: '/elsewhere',
      Link: '</next>; rel=next',
      'Retry-After': '3',
      'Content-Security-Policy': "default-src 'none'",
      'X-Plugin-Anything': 'a',
      'X-Total-Count': '7',
      'X-RateLimit-Remaining': '1',
      'X-Whatever': 'x',
      'X-Frame-Options': 'DENY',
      'Server-Timing': 'db;dur=53',
      Deprecation: '@1688169599',
    };
    t.same(
      lines(kept),
      Object.entries(kept).map(([name, value]) => `${name}: ${value}`),
    );
    const acting = [
      'NEL',
      'Report-To',
      'Reporting-Endpoints',
      'Strict-Transport-Security',
      'Alt-Svc',
      'Clear-Site-Data',
      'Refresh',
      'Speculation-Rules',
      'Origin-Agent-Cluster',
      'Public-Key-Pins',
      'Service-Worker-Allowed',
      'Access-Control-Allow-Origin',
      'X-Accel-Redirect',
      'X-Sendfile',
      'X-Request-Id',
      'X-Content-Type-Options',
      'Date',
      'Server',
      'Permissions-Policy',
      'Set-Cookie2',
      'X-Forwarded-Host',
      'Traceparent',
    ];
    for (const name of acting) {
      t.match(dropped({ [name]: 'x' }), [new RegExp(`^${name} \\(it acts beyond the answer`)], name);
      t.same(lines({ 'Content-Type': 'text/plain', [name]: 'x' }), ['Content-Type: text/plain'], name);
    }
    for (const name of ['Content-Length', 'Transfer-Encoding', 'connection', 'Keep-Alive', 'Upgrade', 'TE', 'Trailer'])
      t.match(checkResponseHeaders(JSON.stringify({ [name]: 'x' }), 'p'), {
        ok: false,
        reason: /set by the host alone/,
      });
  },
);

t.test('a cookie of a plugin is sent only to its own triggers, and an answer may set only a few', async t => {
  const base = 'Path=/api/triggers/http/p';
  const cookie = (value: string | string[]) => lines({ 'Content-Type': 'text/plain', 'Set-Cookie': value }).slice(1);
  t.same(cookie('a=1'), [`Set-Cookie: a=1; ${base}`]);
  t.same(cookie('a=1; path=/; Max-Age=3; HttpOnly'), [`Set-Cookie: a=1; ${base}; Max-Age=3; HttpOnly`]);
  t.same(cookie('a=1; Path=/admin/;Secure'), [`Set-Cookie: a=1; ${base}; Secure`]);
  t.same(cookie('a=1; Path = /admin/'), [`Set-Cookie: a=1; ${base}`]);
  t.same(cookie('a=1; Path=/api/triggers/http/p/cart'), [`Set-Cookie: a=1; ${base}/cart`]);
  t.same(cookie('a=1; Path=/api/triggers/http/pp'), [`Set-Cookie: a=1; ${base}`], 'a plugin whose id is longer');
  for (const given of ['a=1; Domain=uni.example', 'a=1;domain = .uni.example', '__Host-a=1; Path=/']) {
    t.same(cookie(given), [], given);
    t.match(dropped({ 'Set-Cookie': given }), [/^Set-Cookie \(/], given);
  }
  t.equal(cookie(Array.from({ length: 30 }, (_, k) => `c${k}=1`)).length, 20);
  t.equal(cookie([`a=${'x'.repeat(4000)}`, `b=${'x'.repeat(4000)}`]).length, 1);
  for (const own of ['admin_session=x', ' USER_SESSION=x', 'idp_login_abc=x', 'plugin_login=x'])
    t.match(checkResponseHeaders(JSON.stringify({ 'Set-Cookie': own }), 'p'), { ok: false, reason: /host's own/ }, own);
});

t.test("a challenge names the plugin as its realm: no password is asked for in the host's name", async t => {
  const challenge = (value: string) => lines({ 'Content-Type': 'text/plain', 'WWW-Authenticate': value }).length === 2;
  for (const good of [
    'Basic realm="p"',
    'Bearer realm="p: grades", error="invalid_token"',
    'Digest qop=auth, realm="p"',
  ])
    t.ok(challenge(good), good);
  for (const bad of [
    'Basic',
    'Negotiate',
    'Basic realm="plugin-host admin"',
    'Basic realm="pp"',
    'Basic realm="p.q"',
    'Basic realm=p',
    'Basic realm="p", Basic realm="plugin-host"',
    'Basic realm="p", realm="plugin-host"',
    'Basic x="realm="p"", realm="host"',
    'Basic realm=plugin-host, realm="p"',
    'Basic realm="p", REALM=plugin-host',
  ])
    t.notOk(challenge(bad), bad);
});

t.test('an answer that can run script is sandboxed unless an administrator trusts the pages of the plugin', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(echoHeaders('echo'));
  const policy = async (headers: unknown): Promise<string | null> =>
    (await answer(s, headers)).headers.get('content-security-policy');
  const active = [
    'text/html',
    'TEXT/HTML; charset=utf-8',
    'application/xhtml+xml',
    'image/svg+xml',
    'text/xml',
    'application/xml',
    'application/atom+xml',
    'application/pdf',
    'multipart/x-mixed-replace',
    'text/plain, text/html',
    'nonsense',
    '',
  ];
  for (const type of active) t.equal(await policy({ 'Content-Type': type }), SANDBOX, type);
  t.equal(await policy({ 'Content-Type': ['text/plain', 'text/html'] }), SANDBOX, 'two types');
  t.equal(await policy({}), SANDBOX, 'no type');
  const kept = '{\\22Content-Type\\22:\\22text/plain\\22}';
  await s.install(
    watPlugin({
      id: 'kept',
      imports: ['respond'],
      body: `(data (i32.const 64) "${kept}")`,
      handle:
        '(drop (call $respond (i32.const 304) (i32.const 64) (i32.const 29) (i32.const 0) (i32.const 0))) (i32.const 0)',
    }),
  );
  const revalidated = await s.trigger('kept/run');
  t.equal(revalidated.status, 304);
  t.equal(revalidated.headers.get('content-security-policy'), SANDBOX, 'a 304 speaks for what a browser has kept');
  for (const type of [
    'application/json',
    'text/plain;charset=utf-8',
    'image/png',
    'application/problem+json',
    'video/mp4',
  ])
    t.equal(await policy({ 'Content-Type': type }), null, type);
  const own = await policy({ 'Content-Type': 'text/html', 'Content-Security-Policy': "default-src 'self'" });
  t.equal(own, `default-src 'self', ${SANDBOX}`, "a separate header in addition to the plugin's");
  t.equal((await answer(s, { 'X-Frame-Options': 'DENY' })).headers.get('x-frame-options'), 'DENY');

  for (const a of [await answer(s, {}), await s.trigger('echo/none'), await s.trigger('echo/run', { method: 'PUT' })])
    t.equal(a.headers.get('x-content-type-options'), 'nosniff', String(a.status));

  t.match((await s.admin('GET', '/plugins/echo')).json, { html: { trust: 'sandboxed' } });
  t.match((await s.admin('PUT', '/plugins/echo/html', { trust: 'yes' })).json, {
    status: 422,
    errors: [{ pointer: '/trust' }],
  });
  t.equal((await s.admin('PUT', '/plugins/none/html', { trust: 'trusted' })).status, 404);
  t.match((await s.admin('PUT', '/plugins/echo/html', { trust: 'trusted' })).json, { html: { trust: 'trusted' } });
  t.equal(await policy({ 'Content-Type': 'text/html' }), null);
  t.equal((await answer(s, {})).headers.get('x-content-type-options'), 'nosniff');
  await s.install(watPlugin({ id: 'echo', version: '2.0.0', handle: '(i32.const 0)' }));
  t.match((await s.admin('GET', '/plugins/echo')).json, { html: { trust: 'trusted' } }, 'an upgrade keeps it');
  t.equal((await s.admin('DELETE', '/plugins/echo')).status, 204);
  await s.install(echoHeaders('echo'));
  t.equal(await policy({ 'Content-Type': 'text/html' }), SANDBOX, 'an id that is installed again is not trusted');
});

t.test('what was dropped stands in the record; a service worker and foreign pages get nothing', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const uploaded = await s.upload(echoHeaders('echo'));
  t.match(uploaded.json.notices, [{ code: 'html_sandboxed', message: /frontend.*trusted/ }]);
  await s.install(echoHeaders('echo'));
  const a = await answer(s, { NEL: '{}', 'Content-Type': 'text/plain', 'Set-Cookie': 'a=1; Domain=x.example' });
  t.same([a.status, a.headers.get('nel'), a.headers.get('set-cookie')], [200, null, null]);
  const { items } = (await s.admin('GET', '/plugins/echo/executions')).json as { items: Json[] };
  const record = await s.admin('GET', `/plugins/echo/executions/${items[0]?.id}`);
  t.match(record.text, /response headers were dropped: NEL \(.*Set-Cookie \(/);

  const worker = await answer(s, {}, { 'Service-Worker': 'script' });
  t.match([worker.status, worker.json.detail], [403, /cannot be used as a service worker/]);

  // A page of a trigger has the origin null: it may read public triggers, and sends no cookies.
  const ask = (method: string, headers: Record<string, string>): Promise<http.IncomingHttpHeaders> =>
    new Promise((resolve, reject) => {
      http
        .request(`${s.base}/api/triggers/http/echo/run`, { method, headers, agent: false }, r => {
          r.resume();
          r.on('end', () => resolve(r.headers));
        })
        .on('error', reject)
        .end();
    });
  const preflight = { origin: 'null', 'access-control-request-method': 'POST' };
  const publicly = await ask('GET', { origin: 'null' });
  t.equal(publicly['access-control-allow-origin'], 'null');
  t.equal(publicly['access-control-allow-credentials'], undefined);
  t.match(await ask('OPTIONS', preflight), {
    'access-control-allow-origin': 'null',
    'access-control-allow-methods': 'GET, POST',
    'access-control-allow-credentials': undefined,
  });
  await s.admin('PUT', '/plugins/echo/triggers/run/settings', { allow_user_session: true });
  t.equal(
    (await ask('GET', { origin: 'null' }))['access-control-allow-origin'],
    undefined,
    'protected triggers: nothing',
  );
  t.equal((await ask('OPTIONS', preflight))['access-control-allow-origin'], undefined);
});
