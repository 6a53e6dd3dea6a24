import t from 'tap';
import { request, startTestService } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';

/** Pages on an origin that one trigger lists (docs/access.md "Browsers"). */

const ORIGIN = 'https://app.example';

t.test('a page that may call a trigger may hand it files, and reads why a body is refused', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(watPlugin({ id: 'app', requirements: [{ kind: 'file' }], handle: '(i32.const 0)' }));
  const preflight = async (): Promise<string | null> => {
    const headers = { origin: ORIGIN, 'access-control-request-method': 'POST' };
    const answer = await request(`${s.base}/api/files/init`, { method: 'OPTIONS', headers });
    return answer.headers.get('access-control-allow-origin');
  };
  t.equal(await preflight(), null);
  const settings = { frontend_origins: [ORIGIN] };
  t.equal((await s.admin('PUT', '/plugins/app/triggers/run/settings', settings)).status, 200);
  t.equal(await preflight(), ORIGIN);
  const large = await s.trigger('app/run', {
    method: 'POST',
    headers: { origin: ORIGIN },
    body: Buffer.alloc(11 * 2 ** 20),
  });
  t.match(large, { status: 413, json: { code: 'body_too_large' } });
  t.equal(large.headers.get('access-control-allow-origin'), ORIGIN);
});

t.test('a service key does not open another plugin that takes the id of one that is gone', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const plugin = watPlugin({ id: 'grades', handle: '(i32.const 0)' });
  await s.install(plugin);
  const key = await s.admin('POST', '/service-keys', {
    name: 'campus app',
    scopes: [{ plugin_id: 'grades', trigger: '*' }],
  });
  const access = { allow_service_key: true };
  const call = async (): Promise<number> => {
    await s.admin('PUT', '/plugins/grades/triggers/run/settings', access);
    const headers = { authorization: `Bearer ${String(key.json.key)}` };
    return (await s.trigger('grades/run', { headers })).status;
  };
  t.not(await call(), 403);
  t.equal((await s.admin('DELETE', '/plugins/grades')).status, 204);
  await s.install(plugin);
  t.equal(await call(), 403);
  t.same((await s.admin('GET', `/service-keys/${String(key.json.id)}`)).json.scopes, []);
});
