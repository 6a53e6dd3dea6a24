import t from 'tap';
import { openDatabase } from '../../../src/db/database.ts';
import { EMAIL, logIn, logOut, PASSWORD, sessionOf, startAdminBrowser } from '../../support/admin-browser.ts';
import { startMailServer } from '../../support/mail-server.ts';
import { takePort } from '../../support/ports.ts';
import { appointSecondAdmin } from '../../support/second-admin.ts';
import { request } from '../../support/service.ts';

t.test('an owner changes roles, and a page shows what its administrator may do, and why not', async t => {
  const { axe, errors, open, page, s } = await startAdminBrowser(t, { sample: true });
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  const session = await sessionOf(s);
  const { email } = await appointSecondAdmin(s, db, session, PASSWORD, { roles: ['auditor'] });

  await logOut(page);
  await logIn(page, email, PASSWORD);
  await open('/admin/plugins/hello?tab=access');
  await page.getByText('This takes one of: Access manager, Owner. You are: Auditor.').first().waitFor();
  t.ok(await page.getByLabel('greet: Users').isDisabled(), 'a switch of access');
  t.same(await axe(), []);
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByText('This takes one of: Plugin manager, Owner. You are: Auditor.').waitFor();
  t.ok(await page.getByRole('menuitem', { name: 'Uninstall' }).isDisabled());
  await open('/admin/administrators');
  t.ok(await page.getByRole('button', { name: 'Appoint an administrator' }).isDisabled());

  await logOut(page);
  await logIn(page, EMAIL, PASSWORD);
  await open('/admin/administrators');
  const row = page.getByRole('row', { name: new RegExp(email) });
  await row.getByRole('cell').getByText('Auditor', { exact: true }).last().waitFor();
  await row.getByRole('button', { name: /More actions/ }).click();
  await page.getByRole('menuitem', { name: 'Change what they may do' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Auditor').uncheck();
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

t.test('an operator keeps the service running, and sees no people', async t => {
  const { axe, errors, open, page, s } = await startAdminBrowser(t, { sample: true });
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  const { email } = await appointSecondAdmin(s, db, await sessionOf(s), PASSWORD, { roles: ['operator'] });
  await logOut(page);
  await logIn(page, email, PASSWORD);
  const menu = page.getByRole('navigation');
  await menu.getByRole('link', { name: 'Outbox' }).waitFor();
  for (const name of ['People', 'Roles', 'Relationships', 'Why?'])
    t.equal(await menu.getByRole('link', { name }).count(), 0, name);
  await open('/admin/people');
  await page.getByText('This takes one of: Auditor, Access manager, Owner. You are: Operator.').waitFor();
  t.equal(await page.getByRole('button', { name: 'Try again' }).count(), 0, 'another try would give nothing');
  t.same(await axe(), []);
  await open('/admin/audit');
  await page.getByText('This takes one of: Auditor, Access manager, Owner. You are: Operator.').waitFor();
  t.same(await axe(), []);
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
    await page.getByText(/^Only people with the role student may call now: /).waitFor();
    await page.getByText('has_role("student")').first().waitFor();
    await page.getByText('No person has the role student yet').waitFor();
    t.same(await axe(), []);
    await page.getByRole('link', { name: 'Add a person with it' }).click();
    await dialog.getByLabel('Name').fill('Ilya');
    const given = dialog.getByLabel('Role').and(page.locator('input'));
    t.equal(await given.inputValue(), 'student');
    t.same(await axe(), []);
    await given.fill('a student');
    await dialog.getByRole('button', { name: 'Add a person' }).click();
    await dialog.getByText('A role is made of letters, digits').waitFor();
    await given.fill('student');
    await dialog.getByRole('button', { name: 'Add a person' }).click();
    await page.getByText('Ilya is added').waitFor();
    await page.getByRole('tab', { name: 'Roles' }).click();
    await page.getByRole('row', { name: /student/ }).waitFor();
    t.equal((await s.trigger('hello/greet')).status, 401);
    await open('/admin/why?user=1&plugin=hello&trigger=greet');
    await page.getByText(/^No: /).waitFor();
    await page.getByText('Give the person what the policy asks for').waitFor();
    await page.getByText(/^False for /).waitFor();
    await page.getByText('has_role("student")', { exact: true }).first().waitFor();
    t.same(await axe(), []);
    await page.getByRole('link', { name: /^Roles of/ }).click();
    await page.getByLabel('Role').and(page.locator('input[required]')).fill('student');
    await page.getByRole('button', { name: 'Give', exact: false }).last().click();
    await page.getByRole('row', { name: /student/ }).waitFor();
    await open('/admin/why?user=1&plugin=hello&trigger=greet');
    await page.getByText(/^Yes: /).waitFor();
    await page.getByRole('button', { name: 'Find everyone it lets in' }).click();
    await page.getByText('It lets 2 people in.').waitFor();
    await page.locator('main').getByRole('link', { name: 'Ilya' }).waitFor();
    t.same(await axe(), []);

    await open('/admin/plugins/hello/triggers/greet');
    await page.getByRole('button', { name: 'has_role("teacher")' }).click();
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Saved in greet: the policy').waitFor();
    await page.getByRole('button', { name: 'History' }).click();
    const newest = dialog.getByRole('row').filter({ has: page.locator('ins') });
    t.equal(await newest.locator('ins').textContent(), 'teacher');
    t.equal(await newest.locator('del').textContent(), 'student');
    t.same(await axe(), []);

    await open('/admin/roles');
    await page
      .getByRole('row', { name: /^student.* 2$/ })
      .getByRole('button', { name: 'student' })
      .click();
    const who = page.getByRole('dialog', { name: 'The role “student”' });
    const ilya = who.getByRole('row', { name: /Ilya/ });
    t.same(await axe(), []);
    await ilya.getByRole('button', { name: 'Take' }).click();
    await page.getByRole('dialog', { name: 'Take away' }).getByRole('button', { name: 'Take away' }).click();
    await ilya.waitFor({ state: 'detached' });
    await who.getByPlaceholder('Name, email or id').fill('Ilya');
    await page.getByRole('option', { name: /Ilya/ }).click();
    await who.getByRole('button', { name: 'Give a role' }).click();
    await ilya.waitFor();
    await open('/admin/roles?kind=global&give=1');
    const giving = page.getByRole('dialog', { name: 'Give a role' });
    await giving.getByLabel('Role').and(page.locator('input')).fill('tutor');
    await giving.getByPlaceholder('Name, email or id').fill('Ilya');
    await page.getByRole('option', { name: /Ilya/ }).click();
    await giving.getByRole('button', { name: 'Give a role' }).click();
    await giving.getByText('This person has no university id').waitFor();
    t.same(await axe(), []);

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

t.test('an administrator appoints another one, and sees what becomes of the mail', async t => {
  const port = await takePort();
  const env = { BOT_SMTP_HOST: '127.0.0.1', BOT_SMTP_PORT: String(port) };
  const { errors, page, s, open } = await startAdminBrowser(t, { env, people: [{ display_name: 'Grace' }] });
  await open('/admin/administrators');
  await page.getByRole('button', { name: 'Appoint an administrator' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByPlaceholder('Name, email or id').fill('Grace');
  await page.getByRole('option', { name: /Grace/ }).click();
  await dialog.getByLabel('Email').fill('grace@uni.example');
  await dialog.getByLabel('Owner').check();
  await dialog.getByRole('button', { name: /Appoint/ }).click();
  await page.getByText('grace@uni.example').first().waitFor();
  const smtp = await startMailServer(port);
  t.teardown(() => smtp.close());
  const password = /[a-z2-9]{5}(?:-[a-z2-9]{5}){3}/.exec((await smtp.nth(0)).text)?.[0] ?? '';
  await page
    .getByText(/mail sent/i)
    .first()
    .waitFor();
  await logOut(page);
  await page.getByLabel('Email').fill('grace@uni.example');
  await page.getByRole('textbox', { name: 'Password' }).fill(password);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.getByText('Choose your password').waitFor();
  await page.getByRole('textbox', { name: 'Temporary password' }).fill(password);
  await page.getByRole('textbox', { name: 'New password', exact: true }).fill('another sentence of mine');
  await page.getByRole('textbox', { name: 'New password again' }).fill('another sentence of mine');
  await page.getByRole('button', { name: 'Change the password' }).click();
  await page.getByRole('heading', { level: 1 }).waitFor();
  await logOut(page);
  await logIn(page, EMAIL, PASSWORD);
  t.same(errors, []);
  t.equal((await s.admin('GET', '/admins')).status, 401, 'the setup token has ended');
});

t.test('an administration key shows its secret once, and gets a new one while the old one works on', async t => {
  const { axe, errors, open, page, s } = await startAdminBrowser(t);
  const opens = async (key: string): Promise<number> =>
    (await request(`${s.base}/api/admin/plugins`, { headers: { authorization: `Bearer ${key}` } })).status;
  await open('/admin/keys?make=1');
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('monitoring');
  await dialog.getByLabel('Read everything but people').check();
  t.same(await axe(), []);
  await dialog.getByRole('button', { name: 'Make a key' }).click();
  const first = (await dialog.locator('pre').first().textContent()) ?? '';
  t.equal(await opens(first), 200);
  await dialog.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('link', { name: 'Administration keys' }).click();
  await page.getByRole('button', { name: 'Rotate monitoring' }).click();
  await dialog.getByText('The key gets a new secret').waitFor();
  t.same(await axe(), []);
  await dialog.getByRole('button', { name: 'Rotate', exact: true }).click();
  await dialog.getByText('The old secret works until').waitFor();
  const second = (await dialog.locator('pre').first().textContent()) ?? '';
  t.match(second, /^pha_/);
  t.not(second, first);
  t.same([await opens(first), await opens(second)], [200, 200]);
  t.equal(await dialog.count(), 1, 'nothing else is open');
  await page.evaluate('history.back()');
  await page.getByText('What is shown here is not shown again.').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).last().click();
  t.equal(await dialog.locator('pre').first().textContent(), second, 'the way back does not lose it');
  await dialog.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByText('Old secret good until').waitFor();
  t.same(await axe(), []);
  t.same(errors, []);
});
