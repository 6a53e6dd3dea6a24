import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { logIn, logOut, PASSWORD, startAdminBrowser } from '../support/admin-browser.ts';
import { CookieJar } from '../support/identity-provider.ts';
import { appointSecondAdmin } from '../support/second-admin.ts';
import { request } from '../support/service.ts';

t.test('an owner changes roles, and a page shows what its administrator may do, and why not', async t => {
  const { axe, errors, open, page, s } = await startAdminBrowser(t, { sample: true });
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  const jar = new CookieJar();
  const login = await request(`${s.base}/api/admin/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'ada@uni.example', password: PASSWORD }),
  });
  jar.take(login.headers);
  const { email } = await appointSecondAdmin(s, db, jar.header, PASSWORD, { roles: ['viewer'] });

  await logOut(page);
  await logIn(page, email, PASSWORD);
  await open('/admin/plugins/hello?tab=access');
  await page.getByText('This takes one of: Access manager, Owner. You are: Viewer.').first().waitFor();
  t.ok(await page.getByLabel('greet: Users').isDisabled(), 'a switch of access');
  t.same(await axe(), []);
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByText('This takes one of: Plugin manager, Owner. You are: Viewer.').waitFor();
  t.ok(await page.getByRole('menuitem', { name: 'Uninstall' }).isDisabled());
  await open('/admin/administrators');
  t.ok(await page.getByRole('button', { name: 'Appoint an administrator' }).isDisabled());

  await logOut(page);
  await logIn(page, 'ada@uni.example', PASSWORD);
  await open('/admin/administrators');
  const row = page.getByRole('row', { name: new RegExp(email) });
  await row.getByRole('cell').getByText('Viewer', { exact: true }).last().waitFor();
  await row.getByRole('button', { name: /More actions/ }).click();
  await page.getByRole('menuitem', { name: 'Change what they may do' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Viewer').uncheck();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByText('Choose at least one').waitFor();
  await dialog.getByLabel('Access manager').check();
  t.same(await axe(), []);
  await dialog.getByRole('button', { name: 'Save' }).click();
  await row.getByText('Access manager', { exact: true }).last().waitFor();

  await logOut(page);
  await logIn(page, email, PASSWORD);
  await open('/admin/plugins/hello?tab=access');
  const users = page.getByLabel('greet: Users');
  await users.waitFor({ state: 'attached' });
  t.notOk(await users.isDisabled(), 'an access manager may');
  t.same(errors, []);
});

t.test(
  'a trigger is opened to one role without writing a policy, and why a person may not is said in words',
  async t => {
    const { axe, errors, open, page, s } = await startAdminBrowser(t, {
      sample: true,
      people: [{ display_name: 'Grace' }],
    });
    await open('/admin/plugins/hello?tab=access');
    await page.getByRole('button', { name: 'Only people with a role…' }).click();
    const dialog = page.getByRole('dialog');
    const role = dialog.getByRole('combobox', { name: 'Role' }).or(dialog.locator('input[required]'));
    await role.fill('stundet');
    await dialog.getByText('No person has the role stundet yet').waitFor();
    await role.fill('');
    t.same(await axe(), []);
    await page.getByRole('option', { name: /^student/ }).click();
    await dialog.getByRole('button', { name: 'Let only them in' }).click();
    await page.getByText('Only people with the role student may call it now').waitFor();
    await page.getByText('has_role("student")').first().waitFor();
    await page.getByText('No person has the role student yet').waitFor();
    t.same(await axe(), []);
    await page.getByRole('link', { name: 'Add a person with it' }).click();
    await dialog.getByLabel('Name').fill('Ilya');
    t.equal(await dialog.getByLabel('Role').and(page.locator('input')).inputValue(), 'student');
    t.same(await axe(), []);
    await dialog.getByRole('button', { name: 'Add a person' }).click();
    await page.getByText('Ilya is added').waitFor();
    await page.getByRole('tab', { name: 'Roles' }).click();
    await page.getByRole('row', { name: /student/ }).waitFor();
    t.equal((await s.trigger('hello/greet')).status, 401);
    await open('/admin/why?user=1&plugin=hello&trigger=greet');
    await page.getByText(/^No: /).waitFor();
    await page.getByText('Give the person what the policy asks for').waitFor();
    t.same(await axe(), []);
    await page.getByRole('link', { name: /^Roles of/ }).click();
    await page.getByLabel('Role').and(page.locator('input[required]')).fill('student');
    await page.getByRole('button', { name: 'Give', exact: false }).last().click();
    await page.getByRole('row', { name: /student/ }).waitFor();
    await open('/admin/why?user=1&plugin=hello&trigger=greet');
    await page.getByText(/^Yes: /).waitFor();

    await open('/admin/people/1');
    const actions = page.getByRole('button', { name: 'More actions: Grace' });
    await actions.click();
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('menuitem', { name: 'Export what is held' }).click(),
    ]);
    t.equal(file.suggestedFilename(), 'person-1.json');
    await actions.click();
    await page.getByRole('menuitem', { name: 'Erase the person' }).click();
    await page.getByRole('dialog').getByText('goes at once and for good').waitFor();
    t.same(await axe(), []);
    await dialog.getByRole('textbox').fill('Grace');
    await dialog.getByRole('button', { name: 'Erase the person' }).click();
    await page.getByText('Grace is erased').waitFor();
    t.match(page.url(), /\/admin\/people$/);
    t.same(errors, []);
  },
);
