import t, { type Test } from 'tap';
import { endJsonThread, readJsonBody } from '../../src/api/contract/json-thread.ts';
import { JsonBoundError, parseBoundedJson } from '../../src/base/bounded-json.ts';
import { REQUEST_LIMITS } from '../../src/base/request-limits.ts';
import { type Answer, request, startTestService, type TestService } from '../support/service.ts';

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const withKeys = (count: number): string =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, k) => [`k${k}`, 0])));

t.test('JSON from outside is bounded in depth, keys and elements before it is parsed', async t => {
  t.doesNotThrow(() => parseBoundedJson(nested(64)));
  t.throws(
    () => parseBoundedJson(nested(65)),
    new JsonBoundError('it is nested more than 64 levels deep (jsonDepthMax)'),
  );
  // Nothing of it is parsed: it is refused although it never ends.
  t.throws(() => parseBoundedJson('{"a":'.repeat(500_000)), JsonBoundError);
  t.doesNotThrow(() => parseBoundedJson(withKeys(10_000)));
  t.throws(() => parseBoundedJson(withKeys(10_001)), /more than 10000 keys \(jsonKeysMax\)/);
  const elements = (n: number): string => `[${Array(n).fill('0').join(',')}]`;
  t.doesNotThrow(() => parseBoundedJson(elements(100_001)));
  t.throws(() => parseBoundedJson(elements(100_002)), /jsonElementsMax/);
  const text = JSON.stringify({ 'a:{[,"\\': '\\"[[[{{{:,'.repeat(50_000) });
  t.same(parseBoundedJson(text), JSON.parse(text), 'what stands in strings does not count');
  t.throws(() => parseBoundedJson('"\\'), SyntaxError, 'a string that does not end');
});

t.test('a body beyond 64 KiB is not parsed on the main thread', async t => {
  t.teardown(endJsonThread);
  const parsed = t.capture(JSON, 'parse', JSON.parse);
  const padding = ' '.repeat(REQUEST_LIMITS.jsonInlineBytesMax);
  t.same(await readJsonBody(Buffer.from(`{"a":[1]}${padding}`)), { a: [1] });
  t.equal(parsed().length, 0);
  t.same(await readJsonBody(Buffer.from('{"a":[1]}')), { a: [1] });
  t.equal(parsed().length, 1);
});

t.test('bodies of the API', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const post = (
    path: string,
    body: string | Buffer<ArrayBuffer>,
    headers: Record<string, string> = {},
  ): Promise<Answer> => request(`${s.base}${path}`, { method: 'POST', body, headers: { ...json(), ...headers } });
  const asAdmin = { authorization: 'Bearer test-setup-token' };
  await openBodies(t, s, post);
  await adminBodies(t, post, asAdmin);

  await t.test('a batch that is not JSON is answered 400, one that is no list 422', async t => {
    const path = '/api/admin/university/persons';
    for (const body of ['not json', 'nul', '{"a":', '"abc', 'tru', '-', 'x'])
      t.match(await post(path, body, asAdmin), { status: 400, json: { code: 'malformed_request' } }, body);
    for (const [body, what] of [
      ['null', 'null'],
      ['{"a":1}', 'an object'],
      ['"text"', 'a string'],
      ['12', 'a number'],
      ['true', 'true'],
      [` ${nested(1)}`.replace('[]', '{"a":[]}'), 'an object'],
    ])
      t.match(await post(path, body ?? '', asAdmin), { status: 422, text: new RegExp(`not ${what}`) }, String(what));
  });
});

async function openBodies(
  t: Test,
  s: TestService,
  post: (path: string, body: string, headers?: Record<string, string>) => Promise<Answer>,
): Promise<void> {
  await t.test('what needs no credential takes 8 KiB at most, whatever length is announced', async t => {
    for (const path of ['/api/admin/auth/login', '/api/admin/auth/setup']) {
      const headers: Record<string, string> = path.endsWith('setup')
        ? { authorization: 'Bearer test-setup-token' }
        : {};
      const answer = await post(path, withKeys(110_000), headers);
      t.match(answer, { status: 413, json: { code: 'body_too_large' } }, path);
      t.match(answer.json.detail, /openBodyBytesMax \(8192 bytes\)/);
      t.ok(answer.text.length < 2000, `${path}: ${answer.text.length} bytes`);
      t.match(await post(path, nested(500_000), headers), { status: 413 });
      t.match(await post(path, nested(4000), headers), { status: 400, json: { code: 'malformed_request' } });
    }
    const chunked = await fetch(`${s.base}/api/admin/auth/login`, {
      method: 'POST',
      headers: json(),
      body: new Blob(['x'.repeat(9000)]).stream(),
      duplex: 'half',
    } as RequestInit);
    t.equal(chunked.status, 413, 'in chunks too');
    await chunked.body?.cancel();
  });

  await t.test('a refusal names at most 20 errors, and long quotes are cut', async t => {
    const keys = Array.from({ length: 700 }, (_, k) => [`k${k}`, 0]);
    const many = await post('/api/admin/auth/login', JSON.stringify(Object.fromEntries(keys)));
    t.equal(many.status, 422);
    t.equal((many.json.errors as unknown[]).length, REQUEST_LIMITS.errorsToldMax);
    t.equal(many.json.errors_total, 702);
    t.ok(many.text.length < 12_000, `${many.text.length} bytes`);
    const long = await post('/api/admin/auth/login', JSON.stringify({ ['k'.repeat(7000)]: 0 }));
    t.equal(long.status, 422);
    t.ok(long.text.length < 8000, `${long.text.length} bytes`);
  });
}

const json = (): Record<string, string> => ({ 'content-type': 'application/json' });

async function adminBodies(
  t: Test,
  post: (path: string, body: string | Buffer<ArrayBuffer>, headers?: Record<string, string>) => Promise<Answer>,
  asAdmin: Record<string, string>,
): Promise<void> {
  await t.test('a large body of an administrator is read in a thread, with the same bounds and answers', async t => {
    const path = '/api/admin/relationships';
    const one = (k: number) => ({
      resource_type: 'system_role',
      resource_id: `r${k}`,
      relation: 'member',
      subject_type: 'user',
      subject_id: `u${k}`,
    });
    const padding = ' '.repeat(REQUEST_LIMITS.jsonInlineBytesMax);
    for (const pad of ['', padding]) {
      const where = pad === '' ? 'on the main thread' : 'in the thread';
      t.match(await post(path, nested(65) + pad, asAdmin), { status: 400, text: /jsonDepthMax/ }, where);
      t.match(await post(path, `{${pad}`, asAdmin), { status: 400, json: { code: 'malformed_request' } }, where);
      t.match(await post(path, Buffer.from(`"\xff"${pad}`, 'latin1'), asAdmin), { status: 400, text: /UTF-8/ }, where);
      const relationships = Array.from({ length: 3 }, (_, k) => one(k));
      t.match(await post(path, JSON.stringify({ relationships }) + pad, asAdmin), { status: 201 }, where);
    }
    t.match(await post(path, withKeys(50_000), asAdmin), { status: 400, text: /jsonKeysMax/ });
    t.match(await post(path, `[${'0,'.repeat(400_000)}0]`, asAdmin), { status: 400, text: /jsonElementsMax/ });
    const over = await post(path, ' '.repeat(REQUEST_LIMITS.adminBodyBytesMax + 1), asAdmin);
    t.match(over, { status: 413, text: /adminBodyBytesMax/ });
  });
}
