import t from 'tap';
import { startTestService } from '../support/service.ts';

t.test('users are added, changed, searched and paged with the attributes policies may ask of', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const full = {
    external_id: 'e-1',
    idp_accounts_id: 'idp-1',
    display_name: 'Ада Лавлейс',
    primary_channel: 'TELEGRAM',
    locale: 'en',
    nationality_type: 'foreign',
    funding_type: 'budget',
    education_form: 'full_time',
  };
  const added = await s.admin('POST', '/users', full);
  t.equal(added.status, 201);
  t.match(added.json, full);
  const plain = await s.admin('POST', '/users', { display_name: 'Боб' });
  t.match(plain.json, { external_id: null, locale: 'ru', funding_type: null });
  const changed = await s.admin('PATCH', `/users/${added.json.id}`, { funding_type: 'contract', external_id: null });
  t.match(changed.json, { ...full, funding_type: 'contract', external_id: null });
  t.match((await s.admin('GET', `/users/${added.json.id}`)).json, { funding_type: 'contract' });

  const names = async (query: string): Promise<unknown[]> =>
    ((await s.admin('GET', `/users?${query}`)).json.items as Array<{ display_name: string }>).map(u => u.display_name);
  t.same(await names(''), ['Боб', 'Ада Лавлейс'], 'newest first');
  t.same(await names(`search=${encodeURIComponent('лавЛ')}`), ['Ада Лавлейс']);
  t.same(await names('search=idp-1'), ['Ада Лавлейс']);
  t.same(await names(`search=user:${plain.json.id}`), ['Боб'], 'as records of executions name a user');
  t.same(await names(`search=${encodeURIComponent(`#${plain.json.id}`)}`), ['Боб']);
  t.same(await names('search=%25'), [], 'a percent sign is no wildcard');
  const first = await s.admin('GET', '/users?limit=1');
  t.same(await names(`limit=1&cursor=${first.json.next_cursor}`), ['Ада Лавлейс']);
});

t.test('wrong users are refused by field', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.admin('POST', '/users', { external_id: 'e-1', idp_accounts_id: 'i-1' });
  const rows: Array<[unknown, number, string]> = [
    [{ external_id: 'e-1' }, 409, '/external_id'],
    [{ idp_accounts_id: 'i-1' }, 409, '/idp_accounts_id'],
    [{ external_id: '' }, 422, '/external_id'],
    [{ locale: 'de' }, 422, '/locale'],
    [{ primary_channel: 'telegram' }, 422, '/primary_channel'],
    [{ education_form: 5 }, 422, '/education_form'],
    [{ groups: [] }, 422, '/groups'],
    [{ display_name: 'x'.repeat(301) }, 422, '/display_name'],
  ];
  for (const [body, status, pointer] of rows) {
    const a = await s.admin('POST', '/users', body);
    t.match([a.status, a.json.errors], [status, [{ pointer }]], JSON.stringify(body).slice(0, 80));
  }
  const other = await s.admin('POST', '/users', {});
  t.match((await s.admin('PATCH', `/users/${other.json.id}`, { external_id: 'e-1' })).json, { status: 409 });
  for (const id of ['99999', 'x', '0', '-1', '1e3'])
    t.equal((await s.admin('PATCH', `/users/${id}`, {})).status, 404, `PATCH ${id}`);
  for (const part of ['', '/sessions', '/tokens', '/messenger-accounts', '/roles'])
    t.equal((await s.admin('GET', `/users/99999${part}`)).status, 404, `the list ${part} of a user who is not there`);
});
