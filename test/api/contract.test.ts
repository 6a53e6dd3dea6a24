import { createConfig, lintFromString } from '@redocly/openapi-core';
import t from 'tap';
import { z } from 'zod';
import type { Contract } from '../../src/api/contract/contract.ts';
import { apiDocs, apiDocument } from '../../src/api/document/docs-api.ts';
import { RESOURCES } from '../../src/api/document/resources.ts';
import { STATUS_OF } from '../../src/base/errors.ts';
import { contractProblems } from '../support/contract.ts';
import { request, startTestService } from '../support/service.ts';

/** docs/api.md "Contract". */

const s = await startTestService({
  BOT_PLUGINS_ORIGIN: 'http://*.plugins.localhost',
  BOT_HTTP_PUBLIC_URL: 'http://localhost:8080',
});
t.teardown(() => s.stop());

const contracts = Object.entries({ ...RESOURCES, apiDocs }).flatMap(([resource, { endpoints }]) =>
  Object.entries(endpoints as Record<string, Contract>).map(([name, contract]) => ({
    name: `${resource}.${name}`,
    contract,
  })),
);
const rowOf = ({ method, path }: { method: string; path: string }): string => `${method} ${path}`;

t.test('every row of the API has a contract, but our own pages, what authors fetch and preflights', async t => {
  const without = s.service.routes.filter(r => r.contract === undefined);
  for (const r of without)
    t.ok(
      r.method === 'OPTIONS' || /^\/kits(\/|$)/.test(r.path) || /^\/(admin|account|messengers)?(\/|$)/.test(r.path),
      `${rowOf(r)} has no contract: it stands in no document`,
    );
  t.ok(s.service.routes.length - without.length > 110);
});

t.test('a list says which parameters it has, so that others are refused', async t => {
  for (const { contract, name } of contracts) {
    const whole = contract.replies[200];
    if (contract.method === 'GET' && whole instanceof z.ZodObject && 'items' in whole.shape)
      t.not(contract.query, undefined, name);
  }
});

t.test('every endpoint of the document is served', async t => {
  const served = new Set(s.service.routes.map(rowOf));
  for (const { contract, name } of contracts) t.ok(served.has(rowOf(contract)), `${name} is served`);
});

t.test('no two endpoints have one method and path', async t => {
  const rows = contracts.map(c => rowOf(c.contract));
  t.same(rows.toSorted(), [...new Set(rows)].sort());
});

t.test('what an endpoint says of itself: a summary, an example of its JSON body, which the schema takes', async t => {
  for (const { contract, name } of contracts) {
    t.match(contract.summary, /^[A-Z][^.]{5,79}$/, `${name} has a summary of one line without a full stop`);
    const { body, example } = contract;
    if (body == null || 'media' in body) continue;
    t.ok(example !== undefined && 'body' in example, `${name} has an example of its body`);
    const parsed = body.safeParse(example?.body);
    t.ok(parsed.success, `the example of ${name}: ${parsed.success ? '' : z.prettifyError(parsed.error)}`);
    if (example?.reply === undefined) continue;
    const reply = Object.values(contract.replies).find(r => r !== null && !('media' in r));
    t.ok((reply as z.ZodType | undefined)?.safeParse(example.reply).success, `the example of the answer of ${name}`);
  }
});

t.test('an endpoint that makes something takes an Idempotency-Key', async t => {
  /** What needs none, and why. */
  const exceptions: Record<string, string> = {
    'plugins.upload': 'a second version of the same bytes changes nothing',
    'gallery.upload': 'a second version of the same bytes changes nothing',
    'userFiles.announce': 'a file that was announced and not sent is removed by itself',
    'ownSecondFactor.addPasskey': 'what began it counts once',
    'messengerAccounts.link': 'a code ends after minutes, and the newest counts',
  };
  for (const { contract, name } of contracts) {
    if (contract.method !== 'POST' || !(201 in contract.replies) || name in exceptions) continue;
    t.ok(contract.idempotency !== undefined, `${name} says what a repeated request is answered`);
    t.not(contract.guard, 'none', `${name} knows its caller`);
  }
  for (const name of Object.keys(exceptions))
    t.ok(
      contracts.some(c => c.name === name),
      `${name} is there`,
    );
});

t.test('the document is right for a linter of OpenAPI', async t => {
  // A redirect is all that the logins of browsers answer.
  const config = await createConfig({ extends: ['recommended-strict'], rules: { 'operation-2xx-response': 'off' } });
  const problems = await lintFromString({ source: JSON.stringify(apiDocument()), config });
  t.same(
    problems.map(p => `${p.message} ${p.location[0]?.pointer ?? ''}`),
    [],
  );
});

t.test('the document and the reference page are served, and answered 304 when nothing changed', async t => {
  const a = await request(`${s.base}/api/openapi.json`);
  t.equal(a.status, 200);
  t.equal(a.json.openapi, '3.1.1');
  const paths = Object.keys(a.json.paths as object);
  for (const path of ['/api/admin/plugins/{id}/install', '/api/triggers/http/{plugin_id}/{path}', '/api/files/init'])
    t.ok(paths.includes(path), path);
  const page = await request(`${s.base}/api/docs`);
  t.equal(page.status, 200);
  t.match(page.headers.get('content-security-policy'), /^default-src 'none'; style-src 'sha256-/);
  const loaded = /<script|<link|<img|<iframe|<\w[^>]* src=|href=.https?:|url\(|@import/.exec(page.text)?.[0];
  t.equal(loaded, undefined, 'it loads nothing and links to no other host');
  t.notMatch(page.text, / style="/, 'which the policy of the page would refuse');
  for (const { contract } of contracts)
    t.ok(page.text.includes(contract.summary.replaceAll("'", '&#39;')), contract.summary);
  for (const path of ['/api/openapi.json', '/api/docs']) {
    const etag = (await request(`${s.base}${path}`)).headers.get('etag') ?? '';
    for (const known of [etag, `W/${etag}`, `"a, b",W/"c" , ${etag}`, ' * ']) {
      const same = await request(`${s.base}${path}`, { headers: { 'if-none-match': known } });
      t.same([same.status, same.text, same.headers.get('etag')], [304, '', etag], known);
    }
    for (const other of ['"other"', etag.slice(1, -1), '', '"*"'])
      t.equal((await request(`${s.base}${path}`, { headers: { 'if-none-match': other } })).status, 200, other);
  }
});

t.test('an answer that is not as documented is found', async t => {
  const unrotated = { rotated_at: null, old_secret_until: null };
  const key = {
    id: 1,
    name: 'k',
    public: 'p',
    scopes: [],
    made_by: 1,
    expires_at: null,
    last_used_at: null,
    ...unrotated,
  };
  const whole = { ...key, created_at: '2026-01-01T00:00:00.000Z' };
  const check = (status: number, value: unknown, type = 'application/json') =>
    contractProblems('GET', '/api/admin/keys/1', status, type, JSON.stringify(value));
  t.equal(check(200, whole), '');
  t.match(check(200, key), /created_at/, 'a missing member');
  t.match(check(200, { ...whole, secret: 1 }), /additional properties/, 'one member more');
  t.match(check(200, { ...whole, id: 'one' }), /must be integer/, 'another type');
  t.match(check(418, {}), /not documented/, 'another status');
  t.match(check(200, whole, 'text/plain'), /text\/plain/, 'another media type');
  t.match(check(404, { code: 'conflict' }, 'application/problem+json'), /allowed values|required/, 'another code');
});

t.test('a refusal has the members of its code and no others', async t => {
  const refused = (status: number, code: string, more: Record<string, unknown> = {}): string => {
    const every = { type: `urn:x:${code}`, title: 't', status, detail: 'd', instance: '/', code, request_id: 'r' };
    const text = JSON.stringify({ ...every, error: 'd', errors: [], ...more });
    return contractProblems('POST', '/api/admin/auth/login', status, 'application/problem+json', text);
  };
  const asked = { continuation: 'c', methods: ['totp'], passkey_options: null };
  t.equal(refused(401, 'second_factor_required', asked), '');
  t.match(refused(401, 'second_factor_required'), /continuation/, 'one is missing');
  t.match(refused(401, 'second_factor_required', { ...asked, methods: ['sms'] }), /allowed values/, 'another value');
  t.match(refused(401, 'second_factor_required', { ...asked, hint: 'h' }), /unevaluated properties/, 'one more');
  t.equal(refused(401, 'unauthorized', { attempts_left: 4 }), '');
  t.match(refused(401, 'unauthorized', asked), /unevaluated properties/, 'those of another code');
  t.equal(refused(429, 'too_many_attempts'), '');
  t.match(refused(429, 'too_many_attempts', { attempts_left: 4 }), /unevaluated properties/, 'a code without any');
  t.equal(refused(422, 'validation_failed', { errors_total: 30 }), '', 'every refusal counts its errors');
});

t.test('generators of clients understand refusals: a schema for each code, and no member described twice', async t => {
  type Schema = { $ref?: string; allOf?: Schema[]; properties?: Record<string, { const?: unknown }> };
  const { responses, schemas } = apiDocument().components as {
    schemas: Record<string, Schema>;
    responses: Record<string, { content: Record<string, { schema: Schema & { anyOf?: Schema[] } }> }>;
  };
  const resolve = (s: Schema): Schema => (s.$ref === undefined ? s : (schemas[s.$ref.split('/').at(-1) ?? ''] ?? {}));
  for (const [code, status] of Object.entries(STATUS_OF)) {
    const properties = schemas[`Problem.${code}`]?.allOf?.[1]?.properties;
    t.same([properties?.code?.const, properties?.status?.const], [code, status], code);
  }
  for (const [name, { allOf = [] }] of Object.entries(schemas)) {
    const members = allOf.flatMap(part => Object.keys(resolve(part).properties ?? {}));
    t.equal(members.length, new Set(members).size, `${name} joins parts of different members`);
  }
  for (const [name, { content }] of Object.entries(responses))
    for (const { schema } of Object.values(content))
      for (const one of schema.anyOf ?? [schema])
        t.match(one, { $ref: /^#\/components\/schemas\/Problem\.\w+$/ }, name);
});
