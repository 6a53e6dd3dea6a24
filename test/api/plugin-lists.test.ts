import t from 'tap';
import { type Json, startTestService } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';

/** What lists of plugins, versions and executions answer to the pages. */

const failing = (id: string, name: string): Uint8Array => watPlugin({ id, name, handle: 'unreachable' });

t.test('plugins are found by a part of the id or of the name, page by page', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  for (const [id, name] of [
    ['alpha', 'Timetable'],
    ['beta', 'Times of meals'],
    ['gamma', 'Grades 100%'],
  ] as const)
    await s.install(failing(id, name));
  const found = async (query: string): Promise<string[]> => {
    const { json } = await s.admin('GET', `/plugins?${query}`);
    return (json.items as Json[]).map(p => String(p.id));
  };
  t.same(await found('search=TIME'), ['alpha', 'beta'], 'by name, whatever the case');
  t.same(await found('search=amm'), ['gamma'], 'by a part of the id');
  t.same(await found('search=100%25'), ['gamma'], 'signs mean themselves');
  t.same(await found('search=_'), []);
  const first = await s.admin('GET', '/plugins?search=time&limit=1');
  t.match(first.json, { items: [{ id: 'alpha' }], next_cursor: 'alpha' });
  t.same(await found('search=time&limit=1&cursor=alpha'), ['beta']);
});

t.test('the review of an uploaded version is read again, compared with what runs by then', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const { json: uploaded } = await s.upload(failing('alpha', 'Timetable'));
  const review = async () => await s.admin('GET', `/plugins/alpha/versions/${String(uploaded.wasm_key)}`);
  t.same((await review()).json, uploaded, 'the same as the upload answered');
  await s.install(failing('alpha', 'Timetable'));
  t.match((await review()).json, { installed_version: '1.0.0', access: [{ new: false }] });
  t.equal((await s.admin('GET', '/plugins/alpha/versions/none')).status, 404);
  t.equal(
    (await s.admin('GET', `/plugins/beta/versions/${String(uploaded.wasm_key)}`)).status,
    404,
    'of another plugin',
  );
});

t.test('all failures of a plugin are listed together, without what a policy refused', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(failing('alpha', 'Timetable'));
  t.equal((await s.trigger('alpha/run')).status, 502);
  const outcomes = async (outcome: string): Promise<string[]> => {
    const { json } = await s.admin('GET', `/plugins/alpha/executions?outcome=${outcome}`);
    return (json.items as Json[]).map(e => String(e.outcome));
  };
  t.same(await outcomes('failed'), ['trapped']);
  t.same(await outcomes('ok'), []);
  t.equal((await s.admin('GET', '/plugins/alpha/executions?outcome=bad')).status, 422);
});
