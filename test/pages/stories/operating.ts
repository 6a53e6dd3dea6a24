import t from 'tap';
import { policySaved, startAdminBrowser } from '../../support/admin-browser.ts';
import { watPlugin } from '../../support/wat.ts';

/** What administrators do from day to day, in a browser. */

const RESPONDS = {
  imports: ['respond'],
  handle:
    '(drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))) (i32.const 0)',
};
const triggers = [{ name: 'run', type: 'http', path: '/run', methods: ['GET', 'POST'] }];

t.test('a key is made, a version fails, its execution says why, and the version before runs again', async t => {
  const { axe, errors, open, page, s } = await startAdminBrowser(t, {
    async prepare(s) {
      await s.install(watPlugin({ id: 'greeter', version: '1.0.0', triggers, ...RESPONDS }));
      await s.admin('PUT', '/plugins/greeter/triggers/run/settings', { allow_service_key: true });
      await s.install(watPlugin({ id: 'greeter', version: '2.0.0', triggers, handle: 'unreachable' }));
    },
  });
  await open('/admin/service-keys');
  await page.getByRole('button', { name: 'Make a service key' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('timetable');
  await dialog.getByLabel('Add a plugin').click();
  await page.getByRole('option', { name: /greeter/ }).click();
  await dialog.getByLabel('run', { exact: false }).last().check();
  await dialog.getByRole('button', { name: 'Make a service key' }).click();
  const key = (await dialog.getByText(/^phk_/).first().textContent()) ?? '';
  t.same(await axe(), []);
  await dialog.getByRole('button', { name: 'I have stored it' }).click();
  await page
    .getByRole('cell', { name: /timetable/ })
    .first()
    .waitFor();
  const call = () => s.trigger('greeter/run', { headers: { authorization: `Bearer ${key}` } });
  t.match(await call(), { status: 502 }, 'the second version fails');

  await open('/admin/');
  await page.getByRole('link', { name: '1 (100%)' }).waitFor();
  await open('/admin/plugins');
  await page
    .getByRole('row', { name: /greeter/ })
    .getByRole('link', { name: '1', exact: true })
    .click();
  t.match(page.url(), /tab=executions&outcome=failed/);
  await page.getByRole('cell', { name: /trapped/ }).waitFor();
  await page.getByRole('cell', { name: 'service:1' }).waitFor();
  await page
    .getByRole('row', { name: /trapped/ })
    .getByRole('button')
    .first()
    .click();
  const drawer = page.getByRole('dialog');
  await drawer.getByText(/unreachable/).waitFor();
  t.same(await axe(), []);
  const list = /tab=executions&outcome=failed$/;
  await page.goBack();
  await drawer.waitFor({ state: 'detached' });
  t.match(page.url(), list, 'the back button closes what was opened over the list');
  await page.goForward();
  await drawer.getByText(/unreachable/).waitFor();
  await drawer.getByRole('button', { name: 'Close' }).click();
  await drawer.waitFor({ state: 'detached' });
  t.match(page.url(), list);
  await page.goForward();
  await drawer.getByRole('link', { name: 'Open its page' }).click();
  await page.waitForURL(/plugins\/greeter\/executions\/\d+$/);
  await page
    .locator('pre')
    .getByText(/unreachable/)
    .waitFor();

  await open('/admin/plugins/greeter?tab=versions');
  await page
    .getByRole('row', { name: /1\.0\.0/ })
    .getByRole('button', { name: 'Compare' })
    .click();
  await page.getByText('From 2.0.0 to 1.0.0').waitFor();
  await page.reload();
  await page.getByText('From 2.0.0 to 1.0.0').waitFor();
  await page.getByRole('button', { name: 'Close', exact: true }).click();
  await page.getByText('From 2.0.0 to 1.0.0').waitFor({ state: 'detached' });
  t.notMatch(page.url(), /compared/, 'the address says what is shown');
  await page
    .getByRole('row', { name: /1\.0\.0/ })
    .getByRole('button', { name: 'Run again' })
    .click();
  await page.getByRole('dialog').getByText('Version 1.0.0 of Test runs').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Run again' }).click();
  await page.getByText('Version 1.0.0 runs again').waitFor();
  t.equal((await call()).status, 200);

  await open('/admin/executions');
  await page.getByRole('table', { name: 'Failures of the last 24 hours' }).getByText('trapped').waitFor();

  // A refused key: its execution says why, and what would let it in.
  await open('/admin/plugins/greeter/triggers/run');
  const editor = page.locator('.cm-content');
  const save = async (policy: string): Promise<void> => {
    await editor.click();
    await page.keyboard.press('Control+A');
    await page.keyboard.type(policy);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await policySaved(page);
  };
  await save('has_role("dean")');
  t.equal((await call()).status, 403);
  await open('/admin/executions?outcome=refused');
  await page
    .getByRole('row', { name: /refused/ })
    .getByRole('button')
    .first()
    .click();
  await drawer.getByText('Why it was refused').waitFor();
  await drawer.getByText('a service key is not a user').first().waitFor();
  await drawer.getByText('principal.kind == "service" ||').waitFor();
  t.same(await axe(), []);
  await drawer.getByRole('link', { name: 'Open its settings' }).click();
  await save('principal.kind == "service" || has_role("dean")');
  t.equal((await call()).status, 200);
  t.same(errors, []);
});

t.test('a small university is imported from dropped files, and a person’s access is explained', async t => {
  const { axe, errors, open, page } = await startAdminBrowser(t, { sample: true });
  const drop = async (type: string, name: string, text: string): Promise<void> => {
    await open(`/admin/university?type=${type}`);
    await page.setInputFiles('input[type=file]', { name, mimeType: 'text/csv', buffer: Buffer.from(text) });
    await page.getByRole('button', { name: 'Check without importing' }).click();
    await page.getByRole('button', { name: /^Import \d/ }).click();
    await page
      .getByText(/imported/i)
      .first()
      .waitFor();
  };
  const register = (id: number, name: string) => ({
    name: `register-${id}.csv`,
    mimeType: 'text/csv',
    buffer: Buffer.from(`external_id;Фамилия;Имя;СНИЛС\ns-${id};${name};11-22\n`),
  });
  await open('/admin/university?type=person');
  await page.setInputFiles('input[type=file]', register(1, 'Иванова;Анна'));
  await page.getByText('3 columns are not named like fields').waitFor();
  for (const [column, field] of [
    ['Фамилия', 'last_name'],
    ['Имя', 'first_name'],
    ['СНИЛС', 'leave it out'],
  ]) {
    await page.getByRole('combobox', { name: `Field of the column ${column}` }).click();
    await page.getByRole('option', { name: field }).click();
  }
  t.same(await axe(), [], 'columns');
  await page.getByRole('link', { name: 'All types' }).click();
  const question = page.getByRole('dialog').filter({ hasText: 'The records given here are not imported yet' });
  await question.getByRole('button', { name: 'Cancel' }).last().click();
  await question.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Read the file this way' }).click();
  await page.getByText('The columns are kept').waitFor();
  t.notMatch(await page.getByRole('table', { name: 'First records' }).textContent(), '11-22');
  await page.getByRole('button', { name: 'Check without importing' }).click();
  await page.getByRole('button', { name: 'Import 1 record' }).click();
  await page.getByText('1 of 1 records is imported').waitFor();
  // The next file of this kind is read so at once.
  await drop('person', 'persons.csv', register(2, 'Петров;Лев').buffer.toString());
  await drop('faculty', 'faculties.json', JSON.stringify([{ external_id: 'f-1', name: 'Informatics' }]));
  t.same(await axe(), []);
  await open('/admin/university');
  await page
    .getByRole('link', { name: /Persons/ })
    .first()
    .waitFor();
  await open('/admin/people?search=%D0%98%D0%B2%D0%B0%D0%BD');
  await page.getByRole('link', { name: /Иванова/ }).click();
  await page.getByRole('heading', { level: 1, name: /Иванова/ }).waitFor();
  await open('/admin/why');
  await page.locator('main').getByPlaceholder('Name, email or id').click();
  await page.keyboard.type('Иванова');
  await page.getByRole('option', { name: /Иванова/ }).click();
  await page.getByRole('combobox', { name: 'Plugin' }).click();
  await page.getByRole('option', { name: 'Hello' }).click();
  await page.getByRole('combobox', { name: /Trigger/ }).click();
  await page.getByRole('option', { name: 'greet', exact: true }).click();
  await page.getByText(/^(Yes|No): /).waitFor();
  t.same(await axe(), []);
  t.same(errors, []);
});

t.test(
  'lists of the university that are dropped together make a student, in the order of what refers to what',
  async t => {
    const { axe, errors, open, page } = await startAdminBrowser(t, { sample: true });
    await open('/admin/university');
    const lists: Record<string, string> = {
      'student-positions.csv': 'external_id;person_external_id;group_external_id\nsp-1;s-1;g-1\nsp-2;s-9;g-1\n',
      'groups.csv': 'external_id;name;stream_external_id\ng-1;ИВТ-21;st-1\n',
      'streams.csv': 'external_id;name;program_external_id\nst-1;ИВТ;pr-1\n',
      'programs.csv': 'external_id;name;department_external_id\npr-1;ИВТ;d-1\n',
      'departments.csv': 'external_id;name;faculty_external_id\nd-1;Кафедра;f-1\n',
      'unknown.csv': 'external_id;name\nf-1;Факультет\n',
      'export of people.csv': 'external_id;last_name;first_name\ns-1;Иванова;Анна\n',
    };
    const files = Object.entries(lists).map(([name, text]) => ({
      name,
      mimeType: 'text/csv',
      buffer: Buffer.from(text),
    }));
    await page.setInputFiles('input[type=file]', files);
    const start = page.getByRole('button', { name: 'Import 7 lists' });
    await start.waitFor();
    t.ok(await start.isDisabled(), 'what one file holds is not clear');
    await page.getByText('There is nothing yet of: Faculties').waitFor();
    t.same(await axe(), []);
    await page.getByRole('combobox', { name: 'What unknown.csv holds' }).click();
    await page.getByRole('option', { name: 'Faculties' }).click();
    await page.getByRole('button', { name: 'Check without importing' }).click();
    const checked = page.getByRole('row', { name: /student-positions/ });
    await checked.getByText('1 of 2 records can be imported').waitFor();
    await checked.getByText('1 of them refers to a record in another list here.').waitFor();
    await checked.getByText('line 3 · sp-2 · person_external_id').waitFor();
    t.equal(await page.getByText('1 of 1 records can be imported').count(), 6);
    t.same(await axe(), []);
    await start.click();
    await page.getByText('Some records were refused').waitFor();
    await page.getByText('1 of 2 taken').waitFor();
    t.equal(await page.getByText('1 of 1 taken').count(), 6);
    t.same(await axe(), []);
    await page.getByRole('link', { name: 'See the people' }).click();
    await page.getByRole('link', { name: /Иванова/ }).click();
    await page.getByRole('tab', { name: 'Roles' }).click();
    await page.getByRole('row', { name: /student/ }).waitFor();
    t.same(errors, []);
  },
);

t.test('in a page in Russian, what is wrong with a record is said in Russian', async t => {
  const { axe, errors, open, page } = await startAdminBrowser(t, { language: 'ru-RU' });
  await open('/admin/university');
  const files = {
    'persons.csv': 'external_id;last_name;locale\ns-1;Иванова;fr\n',
    'departments.csv': 'external_id;name;faculty_external_id\nd-1;Кафедра;f-9\n',
  };
  for (const [k, [name, text]] of Object.entries(files).entries()) {
    await open('/admin/university');
    await page.setInputFiles('input[type=file]', { name, mimeType: 'text/csv', buffer: Buffer.from(text) });
    await page.getByRole('button', { name: 'Импортировать 1 список' }).click();
    await page.getByText('Часть записей отклонена').waitFor();
    await page.getByRole('link', { name: /с ошибк/ }).click();
    for (const words of k === 0
      ? ['Нужно в каждой записи.', 'Должно быть одно из: ru, en.']
      : [/в списке «Факультеты»/])
      await page.getByText(words).first().waitFor();
    await page.getByText('ada@uni.example').first().waitFor();
    t.same(await axe(), []);
  }
  await open('/admin/account');
  await page.getByLabel('Текущий пароль').fill('correct horse battery');
  for (const password of ['коты', 'к'.repeat(40)]) {
    await page.getByRole('textbox', { name: 'Новый пароль', exact: true }).fill(password);
    await page.getByRole('textbox', { name: 'Новый пароль ещё раз' }).fill(password);
    await page.getByRole('button', { name: 'Сменить пароль' }).click();
    const mistake =
      password.length < 10 ? /слишком коротко, нужно не меньше 10 байт/ : /слишком длинно, предел 72 байта/;
    await page.getByText(mistake).first().waitFor();
  }
  t.same(errors, []);
});
