import http from 'node:http';
import t from 'tap';
import { type Answer, type Json, request, startTestService } from '../support/service.ts';
import { respondText, watPlugin } from '../support/wat.ts';

/** Answers its own name, so that routing can be seen. */
const named = (id: string, triggers: Array<{ name: string; path: string; methods: string[] }>): Uint8Array =>
  watPlugin({
    id,
    imports: ['respond', 'input_len', 'input_read'],
    memory: '4',
    triggers: triggers.map(x => ({ type: 'http', ...x })),
    handle: `(local $n i32) (local.set $n (call $input_len (i32.const 0))) (drop (call $input_read (i32.const 0) (i32.const 1024) (local.get $n)))
      (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 1024) (local.get $n))) (i32.const 0)`,
  });

const event = (a: Answer) =>
  a.json as {
    trigger: string;
    request_id: string;
    http: {
      params: Record<string, string>;
      path: string;
      headers: Record<string, string>;
      query: Record<string, string>;
      query_all: Record<string, string[]>;
      raw_query: string;
      auth: null;
      remote_addr: string;
      method: string;
    };
  };

t.test('requests find their trigger by path and method, the longest literal match first', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(
    named('routes', [
      { name: 'root', path: '', methods: ['GET'] },
      { name: 'list', path: '/items', methods: ['GET'] },
      { name: 'add', path: '/items', methods: ['POST', 'PUT'] },
      { name: 'one', path: '/items/:id', methods: ['GET'] },
      { name: 'new', path: '/items/new', methods: ['GET'] },
      { name: 'part', path: '/items/:id/parts/:part', methods: ['GET', 'DELETE'] },
      { name: 'any', path: '/:kind/:id', methods: ['GET'] },
    ]),
  );
  const rows: Array<[string, string, string, Record<string, string>]> = [
    ['GET', '', 'root', {}],
    ['GET', '/', 'root', {}],
    ['GET', '/items', 'list', {}],
    ['GET', '/items/', 'list', {}],
    ['POST', '/items', 'add', {}],
    ['PUT', '/items', 'add', {}],
    ['GET', '/items/new', 'new', {}],
    ['GET', '/items/5', 'one', { id: '5' }],
    ['GET', '/items/%D0%90%2Fb', 'one', { id: 'А/b' }],
    ['DELETE', '/items/5/parts/6', 'part', { id: '5', part: '6' }],
    ['GET', '/other/7', 'any', { kind: 'other', id: '7' }],
  ];
  for (const [method, path, name, params] of rows) {
    const a = await s.trigger(`routes${path}?a=1&b=%D1%8F`, { method });
    t.equal(a.status, 200, `${method} ${path}`);
    t.equal(event(a).trigger, name, `${method} ${path}`);
    t.same(event(a).http.params, params);
    t.match(event(a).http, { method, path, query: { a: '1', b: 'я' }, auth: null, remote_addr: '127.0.0.1' });
  }
  const wrong = await s.trigger('routes/items', { method: 'DELETE' });
  t.equal(wrong.status, 405);
  t.equal(wrong.headers.get('allow'), 'GET, HEAD, POST, PUT');
  for (const path of ['routes/a/b/c', 'routes/items/5/parts', 'nothing/x', 'nothing', '', 'routes/items/%ff'])
    t.equal((await s.trigger(path)).status, 404, path);
});

t.test('the trace id of a valid traceparent stands in the execution record, which is found by it', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(named('traced', [{ name: 'x', path: '/x', methods: ['GET'] }]));
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
  const parent = '00f067aa0ba902b7';
  const good = [`00-${trace}-${parent}-01`, `01-${trace}-${parent}-00-more`];
  const bad = [
    `ff-${trace}-${parent}-01`,
    `00-${'0'.repeat(32)}-${parent}-01`,
    `00-${trace}-${'0'.repeat(16)}-01`,
    `00-${trace}-${parent}-01-more`,
    `00-${trace.toUpperCase()}-${parent}-01`,
    `00-${trace}-${parent}`,
    `01-${trace}-${parent}-0102`,
  ];
  for (const [k, traceparent] of [...good, ...bad].entries()) {
    const a = await s.trigger('traced/x', { headers: { traceparent, 'x-request-id': `request-${k}` } });
    t.equal(event(a).http.headers.traceparent, traceparent, 'the plugin sees the header as it came');
  }
  const found = async (query: string) =>
    ((await s.admin('GET', `/plugins/traced/executions?${query}`)).json.items as Array<{ request_id: string }>).map(
      r => r.request_id,
    );
  t.same(await found(`trace_id=${trace}`), ['request-1', 'request-0']);
  t.same(await found('request_id=request-3'), ['request-3']);
  t.match((await s.admin('GET', '/plugins/traced/executions?request_id=request-3')).json, {
    items: [{ trace_id: null }],
  });
});

t.test('IPv6 clients are shown as IPv6, IPv4 clients of the same socket as IPv4', async t => {
  const s = await startTestService({ BOT_HTTP_HOST: '::' });
  t.teardown(() => s.stop());
  await s.install(named('who', [{ name: 'x', path: '/x', methods: ['GET'] }]));
  for (const [host, address] of [
    ['[::1]', '::1'],
    ['127.0.0.1', '127.0.0.1'],
  ]) {
    const a = await request(`http://${host}:${s.service.server.port}/api/triggers/http/who/x`);
    t.equal(event(a).http.remote_addr, address);
  }
});

t.test('two triggers that collide are refused at upload and named', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const a = await s.upload(
    named('bad', [
      { name: 'a', path: '/x/:id', methods: ['GET', 'POST'] },
      { name: 'b', path: '/x/:other', methods: ['POST'] },
    ]),
  );
  t.match(a, {
    status: 422,
    json: {
      code: 'module_refused',
      errors: [{ message: /manifest \/triggers\/1\/path: POST \/x\/:other collides with trigger "a"/ }],
    },
  });
});

t.test(
  'a well-formed request id is kept, otherwise one is created; it is returned and passed to the plugin',
  async t => {
    const s = await startTestService();
    t.teardown(() => s.stop());
    await s.install(named('ids', [{ name: 'x', path: '/x', methods: ['GET'] }]));
    const given = await s.trigger('ids/x', { headers: { 'x-request-id': 'abcdefgh-123' } });
    t.equal(given.headers.get('x-request-id'), 'abcdefgh-123');
    t.equal(event(given).request_id, 'abcdefgh-123');
    for (const bad of ['short', 'has spaces in it', 'x'.repeat(65), 'quote"quote"']) {
      const a = await s.trigger('ids/x', { headers: { 'x-request-id': bad } });
      t.match(a.headers.get('x-request-id'), /^[0-9a-f]{16}-[0-9a-z]{7}$/, bad);
      t.equal(event(a).request_id, a.headers.get('x-request-id'));
    }
    t.match((await s.trigger('none')).headers.get('x-request-id'), /./, 'refusals carry one too');
  },
);

t.test('the host’s own cookies and tokens are not shown to plugins', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(named('spy', [{ name: 'x', path: '/x', methods: ['GET'] }]));
  const ask = async (headers: Record<string, string>) => event(await s.trigger('spy/x', { headers })).http.headers;
  t.equal((await ask({ cookie: 'a=1; admin_session=s3cret; b=2; user_session=s3cret' })).cookie, 'a=1; b=2');
  t.equal((await ask({ cookie: 'user_session=s3cret' })).cookie, undefined);
  t.equal((await ask({ authorization: 'Bearer pht_abc.s3cret' })).authorization, undefined);
  t.equal((await ask({ authorization: 'bearer phk_abc.s3cret' })).authorization, undefined);
  t.equal(
    (await ask({ authorization: 'Bearer other' })).authorization,
    'Bearer other',
    "a plugin's own scheme is its own business",
  );
});

t.test('settings: enabled, both flags, policy and origins, with the access they amount to', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(named('set', [{ name: 'x', path: '/x', methods: ['GET'] }]));
  const put = (body: unknown) => s.admin('PUT', '/plugins/set/triggers/x/settings', body);
  t.match((await s.admin('GET', '/plugins/set/triggers/x/settings')).json, {
    enabled: true,
    allow_user_session: false,
    allow_service_key: false,
    policy_expression: '',
    frontend_origins: null,
    effective_access: 'public',
  });
  t.equal((await s.trigger('set/x')).status, 200);
  const rows: Array<[Record<string, unknown>, string, number]> = [
    [{ allow_user_session: true }, 'user', 401],
    [{ allow_service_key: true }, 'user_or_service', 401],
    [{ allow_user_session: false }, 'service', 401],
    [{ allow_service_key: false, policy_expression: 'true' }, 'nobody', 401],
    [{ policy_expression: '', accept_public: true }, 'public', 200],
    [{ enabled: false }, 'disabled', 404],
    [{ enabled: true, accept_public: true }, 'public', 200],
  ];
  for (const [body, access, status] of rows) {
    const { accept_public: accept, ...unconfirmed } = body;
    if (accept !== undefined)
      t.match(
        await put(unconfirmed),
        {
          status: 409,
          json: {
            code: 'confirmation_required',
            detail: /without a login: GET \/api\/triggers\/http\/set\/x/,
            errors: [{ pointer: '/accept_public', message: 'must be true or name x' }],
            becomes_public: [{ trigger: 'x', methods: ['GET'], url: '/api/triggers/http/set/x' }],
          },
        },
        `not without a confirmation: ${JSON.stringify(body)}`,
      );
    t.match(await put(body), { status: 200, json: { effective_access: access } });
    const a = await s.trigger('set/x');
    t.equal(a.status, status, JSON.stringify(body));
    if (status === 401) t.match(a.headers.get('www-authenticate'), /Bearer/);
  }
  for (const [body, pointer] of [
    [{ enabled: 'yes' }, '/enabled'],
    [{ policy_expression: 'x'.repeat(4097) }, '/policy_expression'],
    [{ frontend_origins: ['https://a.example/path'] }, '/frontend_origins/0'],
    [{ frontend_origins: ['*'] }, '/frontend_origins/0'],
    [{ frontend_origins: ['null'] }, '/frontend_origins/0'],
    [{ unknown: 1 }, '/unknown'],
  ] as const)
    t.match(await put(body), { status: 422, json: { errors: [{ pointer }] } }, JSON.stringify(body));
  t.match(await s.admin('PUT', '/plugins/set/triggers/nope/settings', {}), {
    status: 404,
    json: { detail: /it has x/ },
  });
  t.equal((await s.admin('PUT', '/plugins/nope/triggers/x/settings', {})).status, 404);
  t.match((await s.admin('GET', '/plugins/set/triggers')).json, {
    items: [{ trigger: 'x', effective_access: 'public' }],
  });
});

t.test('a protected trigger opened by browser navigation redirects to the login, everything else gets 401', async t => {
  const s = await startTestService({ BOT_IDP_ISSUER: 'https://login.example' });
  t.teardown(() => s.stop());
  await s.install(named('nav', [{ name: 'x', path: '/x', methods: ['GET', 'POST'] }]));
  await s.admin('PUT', '/plugins/nav/triggers/x/settings', { allow_user_session: true });
  // Undici forbids some of these headers, so the request is made by node:http.
  const ask = (method: string, headers: Record<string, string>, base = s.base) =>
    new Promise<{ status: number; location: string | undefined; type: string; text: string }>((resolve, reject) => {
      const r = http.request(`${base}/api/triggers/http/nav/x?a=1&b=2`, { method, headers, agent: false }, res => {
        const { location, 'content-type': type = '' } = res.headers;
        let text = '';
        res.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        res.on('end', () => resolve({ status: res.statusCode ?? 0, location, type, text }));
      });
      r.on('error', reject);
      r.end();
    });
  const login = '/api/auth/idp/start?return_to=%2Fapi%2Ftriggers%2Fhttp%2Fnav%2Fx%3Fa%3D1%26b%3D2';
  t.match(await ask('GET', { 'Sec-Fetch-Mode': 'navigate' }), { status: 302, location: login });
  t.match(await ask('GET', { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }), { status: 302, location: login });
  const bare = await startTestService({}, s);
  t.teardown(() => bare.stop());
  const page = await ask('GET', { Accept: 'text/html' }, bare.base);
  t.same([page.status, page.location], [503, undefined], 'without a provider there is no login to be sent to');
  t.match(page.type, /^text\/html/);
  t.match(page.text, /set idp\.issuer, idp\.client_id and idp\.client_secret/);
  t.notMatch(page.text, /auth\/idp\/start/);
  t.equal((await ask('GET', { 'Sec-Fetch-Mode': 'cors', Accept: 'text/html' })).status, 401);
  t.equal((await ask('GET', { Accept: 'application/json, text/html' })).status, 401);
  t.equal((await ask('GET', {})).status, 401);
  t.equal((await ask('POST', { 'Sec-Fetch-Mode': 'navigate' })).status, 401);
});

t.test(
  'CORS: listed origins only, with credentials, and preflights are answered without running the plugin',
  async t => {
    const s = await startTestService();
    t.teardown(() => s.stop());
    await s.install(
      named('cors', [
        { name: 'x', path: '/x', methods: ['GET', 'POST'] },
        { name: 'y', path: '/y', methods: ['GET'] },
      ]),
    );
    const good = 'https://app.example';
    const ask = (
      path: string,
      method: string,
      origin: string,
      more: Record<string, string> = {},
    ): Promise<Record<string, unknown>> =>
      new Promise((resolve, reject) => {
        const r = http.request(
          `${s.base}/api/triggers/http/cors${path}`,
          { method, headers: { Origin: origin, ...more }, agent: false },
          res => {
            res.resume();
            res.on('end', () => resolve({ ...res.headers, status: res.statusCode ?? 0 }));
          },
        );
        r.on('error', reject);
        r.end();
      });
    t.equal((await ask('/x', 'GET', good))['access-control-allow-origin'], undefined, 'no origin is listed at first');
    t.match(await s.admin('PUT', '/plugins/cors/origins', { origins: [good] }), { status: 200 });
    t.match(await s.admin('PUT', '/plugins/cors/origins', { origins: ['https://app.example/'] }), {
      status: 422,
      json: { errors: [{ pointer: '/origins/0' }] },
    });
    t.match(await ask('/x', 'GET', good), {
      status: 200,
      'access-control-allow-origin': good,
      'access-control-allow-credentials': 'true',
      vary: 'Origin',
    });
    for (const evil of [
      'https://evil.example',
      'https://app.example.evil',
      'http://app.example',
      'https://app.example:444',
    ]) {
      const h = await ask('/x', 'GET', evil);
      t.equal(h['access-control-allow-origin'], undefined, evil);
      t.equal(h.vary, 'Origin');
    }
    const preflight = { 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'content-type,x-a' };
    t.match(await ask('/x', 'OPTIONS', good, preflight), {
      status: 204,
      'access-control-allow-origin': good,
      'access-control-allow-methods': 'GET, POST',
      'access-control-allow-headers': 'content-type,x-a',
      'access-control-max-age': '600',
    });
    t.equal((await ask('/x', 'OPTIONS', 'https://evil.example', preflight))['access-control-allow-origin'], undefined);
    await s.admin('PUT', '/plugins/cors/triggers/y/settings', { frontend_origins: [] });
    t.equal(
      (await ask('/y', 'GET', good))['access-control-allow-origin'],
      undefined,
      'a trigger may override the plugin',
    );
    // A page of the plugin reads that there is no such trigger, or no such method; a browser would call it an error of the network.
    await s.admin('PUT', '/plugins/cors/triggers/x/settings', { enabled: false, accept_public: true });
    for (const [path, method, status] of [
      ['/z', 'GET', 404],
      ['/x', 'POST', 404],
      ['/y', 'DELETE', 405],
    ] as const) {
      t.match(await ask(path, method, good), { status, 'access-control-allow-origin': good, vary: 'Origin' });
      const other = await ask(path, method, 'https://evil.example');
      t.equal(other.status, status);
      t.equal(other['access-control-allow-origin'], undefined);
    }
    for (const path of ['/z', '/x']) {
      const may = await ask(path, 'OPTIONS', good, preflight);
      t.match(may, { 'access-control-allow-origin': good, 'access-control-allow-methods': 'POST' }, path);
      t.equal(
        (await ask(path, 'OPTIONS', 'https://evil.example', preflight))['access-control-allow-origin'],
        undefined,
      );
    }
    t.equal((await ask('/y', 'OPTIONS', good, preflight))['access-control-allow-origin'], undefined);
    await s.install(watPlugin({ id: 'crasher', handle: 'unreachable' }));
    await s.admin('PUT', '/plugins/crasher/origins', { origins: [good] });
    const r = await fetch(`${s.base}/api/triggers/http/crasher/run`, {
      method: 'OPTIONS',
      headers: { origin: good, 'access-control-request-method': 'POST' },
    });
    t.equal(r.status, 204);
    t.match((await s.admin('GET', '/plugins/crasher/executions')).json, { items: [] }, 'a preflight runs no plugin');
  },
);

t.test('a handler that gives no response is 204, one that reports an error is 502', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(watPlugin({ id: 'quiet', handle: '(i32.const 0)' }));
  t.equal((await s.trigger('quiet/run')).status, 204);
  await s.install(watPlugin({ id: 'negative', handle: '(i32.const -7)' }));
  t.match(await s.trigger('negative/run'), { status: 502, json: { code: 'plugin_error' } });
  await s.install(
    watPlugin({
      id: 'says',
      imports: ['fail', 'respond'],
      body: '(data (i32.const 64) "secret reason")',
      handle: `(drop (call $fail (i32.const 64) (i32.const 13))) ${respondText(64, 2)} (i32.const 0)`,
    }),
  );
  const a = await s.trigger('says/run');
  t.equal(a.status, 502);
  t.notMatch(a.text, /secret reason/);
  t.match((await s.admin('GET', '/plugins/says/executions')).json, {
    items: [{ outcome: 'handler_error', failure: 'secret reason' }],
  });
});

t.test('all values of a name in the query can be read, and the query as it was sent', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(named('queries', [{ name: 'run', path: '/run', methods: ['GET'] }]));
  const rows: Array<[raw: string, query: Json, all: Json]> = [
    ['', {}, {}],
    ['tag=a&tag=b', { tag: 'b' }, { tag: ['a', 'b'] }],
    ['tag=a&x=1&tag=&tag', { tag: '', x: '1' }, { tag: ['a', '', ''], x: ['1'] }],
    ['a%5B%5D=%D1%8F+%2B&a[]=2', { 'a[]': '2' }, { 'a[]': ['я +', '2'] }],
    [
      '__proto__=1&__proto__=2&constructor=3',
      JSON.parse('{"__proto__":"2","constructor":"3"}'),
      JSON.parse('{"__proto__":["1","2"],"constructor":["3"]}'),
    ],
  ];
  for (const [raw, query, all] of rows) {
    const { http } = event(await s.trigger(`queries/run${raw === '' ? '' : `?${raw}`}`));
    t.same([http.query, http.query_all, http.raw_query], [query, all, raw], raw);
  }
});

t.test('HEAD is answered where GET is, as GET without its body; a plugin that names HEAD sees it', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(
    named('heads', [
      { name: 'page', path: '/page', methods: ['GET', 'POST'] },
      { name: 'one', path: '/items/:id', methods: ['GET'] },
      { name: 'own', path: '/own', methods: ['GET'] },
      { name: 'head', path: '/own', methods: ['HEAD'] },
      { name: 'add', path: '/add', methods: ['POST'] },
    ]),
  );
  for (const path of ['heads/page', 'heads/items/5']) {
    const [get, head] = [await s.trigger(path), await s.trigger(path, { method: 'HEAD' })];
    t.same([head.status, head.text], [200, '']);
    t.equal(head.headers.get('content-type'), get.headers.get('content-type'));
    t.match(head.headers.get('content-length'), /^\d{3,}$/, 'as long as the answer of GET');
    const records = (await s.admin('GET', '/plugins/heads/executions?limit=1')).json.items as Json[];
    t.match(records, [{ outcome: 'ok' }]);
  }
  t.equal((await s.trigger('heads/own', { method: 'HEAD' })).status, 200);
  t.match((await s.admin('GET', '/plugins/heads/executions?limit=1')).json, { items: [{ trigger: 'head' }] });
  const refused = await s.trigger('heads/add', { method: 'HEAD' });
  t.same([refused.status, refused.headers.get('allow')], [405, 'POST']);
  await s.admin('PUT', '/plugins/heads/triggers/page/settings', { allow_user_session: true });
  t.equal((await s.trigger('heads/page', { method: 'HEAD' })).status, 401, 'access is that of GET');
});

t.test('HEAD, 204 and 304 carry no body, and the connection stays usable', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const status = (id: string, code: number): Uint8Array =>
    watPlugin({
      id,
      imports: ['respond'],
      triggers: [{ name: 'run', type: 'http', path: '/run', methods: ['GET', 'HEAD'] }],
      body: '(data (i32.const 64) "body")',
      handle: `(drop (call $respond (i32.const ${code}) (i32.const 0) (i32.const 0) (i32.const 64) (i32.const 4))) (i32.const 0)`,
    });
  for (const code of [200, 204, 304]) await s.install(status(`s${code}`, code));
  for (let k = 0; k < 3; k++) {
    const head = await s.trigger('s200/run', { method: 'HEAD' });
    t.same([head.status, head.text, head.headers.get('content-length')], [200, '', '4']);
    t.same([(await s.trigger('s204/run')).status, (await s.trigger('s304/run')).status], [204, 304]);
    t.equal((await s.trigger('s200/run')).text, 'body');
  }
});

t.test(
  'each answer carries the headers its plugin set and its request id, whatever the answers before it carried',
  async t => {
    const s = await startTestService();
    t.teardown(() => s.stop());
    // Takes the request's body for the headers of its answer.
    await s.install(
      watPlugin({
        id: 'echo',
        imports: ['respond', 'input_len', 'input_read'],
        handle: `(local $n i32) (local.set $n (call $input_len (i32.const 1))) (drop (call $input_read (i32.const 1) (i32.const 1024) (local.get $n)))
        (drop (call $respond (i32.const 200) (i32.const 1024) (local.get $n) (i32.const 1024) (local.get $n))) (i32.const 0)`,
      }),
    );
    const sets: Array<Record<string, string>> = [
      {},
      { 'X-Plugin-One': '1' },
      {},
      { 'X-Plugin-One': '', 'X-Plugin-Two': 'a: b, "c"', 'X-Plugin-Three': '\u00fc' },
      { 'X-Plugin-One': '1' },
      { 'X-Plugin-Long': 'l'.repeat(3000) },
      {},
    ];
    for (let k = 0; k < 21; k++) {
      const headers = sets[k % sets.length] ?? {};
      const id = `request-${k}`;
      const a = await s.trigger('echo/run', {
        method: 'POST',
        body: JSON.stringify(headers),
        headers: { 'x-request-id': id },
      });
      t.same([a.status, a.text], [200, JSON.stringify(headers)]);
      const own = [...a.headers].filter(([name]) => /^x-(plugin|request)-/.test(name)).sort();
      t.same(own, [...Object.entries(headers).map(([n, v]) => [n.toLowerCase(), v]), ['x-request-id', id]].sort());
    }
  },
);
