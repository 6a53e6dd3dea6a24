import type { Page } from 'playwright-core';
import t from 'tap';
import { ru } from '../../../admin/src/texts/ru.ts';
import { EMAIL, logOut, PASSWORD, sessionOf, startAdminBrowser } from '../../support/admin-browser.ts';
import { buildExample } from '../../support/sdk.ts';
import { type Json, request, TOKEN } from '../../support/service.ts';
import { watPlugin } from '../../support/wat.ts';

/** From an empty service to a plugin that answers, in a browser. */

/** Chooses the first person offered, with a second click when the list has closed under the first one. */
async function choosePerson(page: Page): Promise<void> {
  const field = page.locator('main').getByPlaceholder('Name, email or id');
  for (let tries = 1; (await field.inputValue()) === ''; tries++) {
    await field.click();
    const chosen = page.getByRole('option').first().click({ timeout: 5000 });
    await (tries === 4 ? chosen : chosen.catch(() => page.keyboard.press('Escape')));
  }
}

t.test('setup, upload, review, installation, first call, policy, rollback, logout', async t => {
  const { axe, errors, open, page, s } = await startAdminBrowser(t, { loggedIn: false });
  const heading = (name: string | RegExp) => page.getByRole('heading', { name }).first().waitFor();
  const seen = async (screen: string): Promise<void> => void t.same(await axe(), [], `axe: ${screen}`);

  await page.getByText('This service is still being set up').waitFor();
  t.equal(new URL(page.url()).hash, '', 'the token is taken out of the address');
  await heading('Set up this service');
  t.equal(new URL(page.url()).pathname, '/admin/setup', 'the link leads to the setup itself');
  await page.getByText('Database', { exact: true }).waitFor();
  await seen('setup');

  await page.getByRole('button', { name: 'Create and log in' }).click();
  const words = await page.evaluate("document.querySelector('input[type=email]').validationMessage");
  t.equal(words, 'Fill in this field.', 'in the words of the page, not of the browser');
  await page.getByLabel('Email').fill(EMAIL);
  await page.getByRole('textbox', { name: 'Password', exact: true }).fill('password12');
  await page.getByRole('textbox', { name: 'Password again' }).fill('password12');
  await page.getByRole('button', { name: 'Create and log in' }).click();
  await page
    .getByText(/common/)
    .nth(1)
    .waitFor();
  await page.getByRole('textbox', { name: 'Password', exact: true }).fill(PASSWORD);
  await page.getByRole('textbox', { name: 'Password again' }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Create and log in' }).click();
  await heading('Overview');
  await page.getByText('Install the first plugin').waitFor();
  await seen('overview');

  await page.getByRole('link', { name: 'Upload a plugin' }).click();
  const upload = page.locator('main').getByRole('button', { name: 'Upload', exact: true }).last();
  await page.setInputFiles('input[type=file]', {
    name: 'x.wasm',
    mimeType: 'application/wasm',
    buffer: Buffer.from('no module'),
  });
  await upload.click();
  await page.getByRole('alert').getByText('The file is no WebAssembly module').waitFor();
  await seen('upload with a refusal');
  const buffer = Buffer.from(await buildExample('guestbook'));
  await page.setInputFiles('input[type=file]', { name: 'guestbook.wasm', mimeType: 'application/wasm', buffer });
  await upload.click();
  await heading('What it asks for');
  await page.getByText('Keeps the entries of the guestbook').waitFor();
  await seen('review');
  await open('/admin/plugins/guestbook?tab=settings');
  await page.getByRole('tab').first().waitFor();
  const tabs = await page.getByRole('tab').allTextContents();
  t.same(tabs, ['Overview', 'Versions'], 'what there is before it is installed');
  await page.goBack();
  await heading('What it asks for');
  await page.getByRole('button', { name: 'Set it up', exact: true }).click();
  await page.getByRole('textbox', { name: 'moderator_key' }).fill('a key of the moderator');
  await page.getByText('As its author suggests').click();
  await seen('installation');
  await page.getByRole('button', { name: 'Install', exact: true }).click();
  await page.getByText('This makes it public').waitFor();
  const question = page.getByRole('dialog');
  t.match(await question.textContent(), '/api/triggers/http/guestbook/entries');
  await question.getByRole('button', { name: 'Cancel' }).last().click();
  t.equal((await s.trigger('guestbook/entries')).status, 404, 'cancelled: nothing is installed');
  await page.getByRole('status').getByText('This was not done, because it was not confirmed.').waitFor();
  await page.getByRole('button', { name: 'Install', exact: true }).click();
  await page.getByRole('button', { name: 'Open it to every caller' }).click();
  await page.getByText('Guestbook 1.0.0 runs').waitFor();
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('HTTP 200').waitFor();
  await seen('first call');

  await page.getByRole('link', { name: 'Open the plugin' }).click();
  await page.getByRole('tab', { name: 'Access' }).click();
  const users = page.getByLabel('entries: Users');
  await page.getByText('PUBLIC').first().waitFor();
  await seen('access');
  await users.click({ force: true });
  await page.getByText('Saved in entries: Users – on').waitFor();
  t.equal((await s.trigger('guestbook/entries')).status, 401, 'it is for users now');
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Open it to every caller' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByText('PUBLIC', { exact: true }).nth(1).waitFor();
  t.equal((await s.trigger('guestbook/entries')).status, 200, 'and public again');

  t.same(errors, []);
  await logOut(page);
  await seen('login');
  await open('/admin/plugins/guestbook?tab=access');
  await page.getByLabel('Email').fill(EMAIL);
  await page.getByRole('textbox', { name: 'Password' }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.getByText('Each change holds at once').waitFor();
  t.match(page.url(), /tab=access/, 'back to where one was going');
});

t.test('a policy is written with the errors of the service, tried as a user, and explained', async t => {
  const { axe, errors, open, page, s } = await startAdminBrowser(t, {
    people: [{ display_name: 'Grace', external_id: 's-1' }],
    prepare: s =>
      s.admin('POST', '/relationships', {
        ...{ resource_type: 'study_group', resource_id: 'ИВТ-21', relation: 'member' },
        ...{ subject_type: 'user', subject_id: 's-1' },
      }),
  });
  const root = await s.admin('GET', '/users');
  t.equal(root.status, 401, 'the setup token has ended');
  t.same(errors, []);
  await open('/admin/plugins/upload');
  const plugin = watPlugin({
    id: 'gate',
    imports: ['respond'],
    body: '',
    handle:
      '(drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))) (i32.const 0)',
  });
  await page.setInputFiles('input[type=file]', {
    name: 'gate.wasm',
    mimeType: 'application/wasm',
    buffer: Buffer.from(plugin),
  });
  await page.locator('main').getByRole('button', { name: 'Upload', exact: true }).last().click();
  await page.getByRole('button', { name: 'Set it up', exact: true }).click();
  await page.getByRole('button', { name: 'Install', exact: true }).click();
  await page.getByRole('link', { name: 'Open the plugin' }).click();
  await page.getByRole('tab', { name: 'Access' }).click();
  await page.getByRole('link', { name: 'Add a policy' }).click();
  const editor = page.getByRole('textbox', { name: 'Policy' });
  await editor.click();
  await page.keyboard.type('user.locle == "ru"');
  await page.locator('.cm-lintRange-error').first().waitFor();
  t.ok(
    await page.getByRole('button', { name: 'Save', exact: true }).first().isDisabled(),
    'a broken policy is not saved',
  );
  await page.keyboard.press('Control+A');
  await page.keyboard.type('user.locale == "r');
  await page.locator('.cm-tooltip-autocomplete').getByText('ru', { exact: true }).waitFor();
  await page.keyboard.press('Control+A');
  await page.keyboard.type('has_role("student") || user.locale == "en"');
  await choosePerson(page);
  await page.getByRole('button', { name: 'Try it' }).click();
  await page
    .getByText(/lets the user in|denies/)
    .first()
    .waitFor();
  await page.getByRole('cell', { name: 'has_role("student")', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Change attributes for this trial' }).click();
  await page.getByLabel('user.roles').and(page.locator('input')).fill('student');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Try it' }).click();
  await page.getByText('lets the user in', { exact: true }).waitFor();
  await page.getByLabel('Without a role').check();
  await page.getByRole('button', { name: 'Try it' }).click();
  await page.getByText('denies', { exact: true }).waitFor();
  t.same(await axe(), []);
  await page.getByRole('button', { name: 'Compare with what is saved' }).click();
  await page.getByText('2 people looked at.').waitFor();
  await page.getByText('2 lose access').waitFor();
  await page.getByRole('button', { name: /In no group/ }).waitFor();
  await page.getByRole('button', { name: /ИВТ-21/ }).click();
  await page.getByRole('link', { name: 'Grace' }).waitFor();
  await page.getByText('No call was recorded in the last 7 days').waitFor();
  t.same(await axe(), []);
  await page.getByRole('button', { name: 'Save', exact: true }).first().click();
  await page.getByText('Saved in run: the policy').waitFor();
  await page.getByRole('link', { name: 'Why?' }).last().click();
  await page.getByRole('heading', { level: 1, name: 'Why?' }).waitFor();
  await choosePerson(page);
  await page.getByText(/^(Yes|No): /).waitFor();
  await page.getByRole('heading', { name: 'Step by step' }).waitFor();
  t.match(page.url(), /user=\d+/, 'the address shows what I see');
  t.same(await axe(), []);
  t.same(errors, []);
});

/** Modules that are refused: by which rule, what the page names as its place, and what it says to do. */
const REFUSED = [
  ['not-wasm', Buffer.from('no module'), 'byte 0', 'chooseModule'],
  ['truncated', watPlugin({ handle: 'i32.const 0' }).subarray(0, -1), 'byte ', 'copyAgain'],
  ['manifest', watPlugin({ abi: 0, handle: 'i32.const 0' }), 'manifest › abi', 'useKit'],
  ['manifest', watPlugin({ id: 'No Id', handle: 'i32.const 0' }), 'manifest › id', 'mendManifest'],
  [
    'import-newer',
    watPlugin({ abi: 1, imports: ['file_read_into'], handle: 'i32.const 0' }),
    'import plugin_host.file_read_into',
    'raiseProtocol',
  ],
  [
    'import-unknown',
    watPlugin({ moreImports: '(import "env" "open" (func $open))', handle: 'i32.const 0' }),
    'import env.open',
    'useKit',
  ],
  ['memory-initial', watPlugin({ memory: '8193', handle: 'i32.const 0' }), 'byte ', 'makeSmaller'],
] as const;

t.test('a refused module: what is wrong, where, and what to do, in the language of the page', async t => {
  const env = { BOT_HTTP_MAX_MODULE: String(64 * 1024) };
  const { axe, errors, open, page } = await startAdminBrowser(t, { language: 'ru-RU', width: 320, env });
  await open('/admin/plugins/upload');
  const alert = page.getByRole('alert');
  const send = async (bytes: Uint8Array): Promise<void> => {
    const buffer = Buffer.from(bytes);
    await page.setInputFiles('input[type=file]', { name: 'x.wasm', mimeType: 'application/wasm', buffer });
    await alert.waitFor({ state: 'detached' });
    await page.locator('main').getByRole('button', { name: 'Загрузить', exact: true }).last().click();
    await alert.waitFor();
  };
  for (const [rule, bytes, place, remedy] of REFUSED) {
    await send(bytes);
    const text = await alert.textContent();
    for (const words of [ru.refusal.module_refused, ru.finding[rule], place, ru.remedy[remedy]])
      t.ok(text?.includes(words), `${rule}: ${words} in ${text}`);
  }
  t.same(await axe(), []);
  await send(Buffer.alloc(64 * 1024 + 1));
  t.match(
    await alert.textContent(),
    `${ru.refusal.body_too_large}the module is larger than http.max_module (65536 bytes)`,
  );
  t.same(errors, []);
});

t.test('the setup token is typed where the link was not followed, and a wrong one is refused', async t => {
  const { errors, open, page } = await startAdminBrowser(t, { loggedIn: false });
  const isWrong = page.getByText('This is not the token that the start has printed');
  await open('/admin/#token=of-an-older-start');
  await isWrong.waitFor();
  await open('/admin/?');
  const token = page.getByLabel('Setup token').and(page.locator('input'));
  await token.fill('not the token');
  await page.getByRole('button', { name: 'Go on' }).click();
  await isWrong.waitFor();
  await token.fill(TOKEN);
  await page.keyboard.press('Enter');
  await page.getByLabel('Your name').waitFor();
  t.equal(new URL(page.url()).pathname, '/admin/setup');
  t.same(errors, []);
});

t.test('a plugin is installed for students alone, and says what is missing before one may call it', async t => {
  const { axe, errors, page } = await startAdminBrowser(t);
  await page.getByRole('region', { name: 'Next steps' }).getByRole('link', { name: 'Upload a plugin' }).click();
  const buffer = Buffer.from(await buildExample('hello'));
  await page.setInputFiles('input[type=file]', { name: 'hello.wasm', mimeType: 'application/wasm', buffer });
  await page.locator('main').getByRole('button', { name: 'Upload', exact: true }).last().click();
  await page.getByRole('button', { name: 'Set it up', exact: true }).click();
  await page.getByRole('radio', { name: /Only people with a role/ }).check();
  await page.getByRole('button', { name: 'Install', exact: true }).click();
  // The browser asks for the role, which must be named.
  await page.locator('main input:invalid').waitFor();
  await page.locator('main input[required]').click();
  await page.getByRole('option', { name: /student.*imports give it/ }).click();
  t.same(await axe(), [], 'axe: the choice of a role');
  await page.getByRole('button', { name: 'Install', exact: true }).click();
  await page.getByText('No person has the role student yet').waitFor();
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('HTTP 403').waitFor();
  await page.getByText('The settings of the trigger refuse you').waitFor();
  t.same(await axe(), [], 'axe: installed for a role');
  await page.getByRole('link', { name: 'Add a person with it' }).click();
  await page.getByRole('dialog').getByLabel('Name').fill('Ilya');
  await page.getByRole('dialog').getByRole('button', { name: 'Add a person' }).click();
  await page.getByRole('heading', { name: 'Ilya' }).waitFor();
  await page.getByRole('link', { name: 'Why may they, or not?' }).click();
  await page.getByText('Yes: Ilya may call greet').waitFor();
  await page.getByLabel('Person').and(page.locator('input')).fill('ada');
  await page.getByRole('option', { name: /ada/i }).click();
  await page.getByText(/^No: /).waitFor();
  // At its step, and among what is false, which comes a moment later.
  await page.getByText('has_role("student")').first().waitFor();
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByText('Executions', { exact: true }).first().waitFor();
  // What was read before is shown until the service has answered.
  await page.getByRole('region', { name: 'Next steps' }).waitFor({ state: 'detached' });
  t.same(errors, []);
});

t.test(
  'a role at the installation leaves narrow what its author keeps narrow, and says that commands stay open',
  async t => {
    const { axe, errors, open, page, s } = await startAdminBrowser(t);
    const http = (name: string, more: object) => ({ name, type: 'http', path: `/${name}`, methods: ['GET'], ...more });
    const plugin = watPlugin({
      id: 'survey',
      handle: '(i32.const 0)',
      triggers: [
        http('answer', { access: { users: true, reason: 'Students answer' } }),
        http('export', { access: { users: true, policy: 'has_role("teacher")', reason: 'Teachers read the answers' } }),
        { name: 'survey', type: 'messenger' },
      ],
    });
    await open('/admin/plugins/upload');
    await page.setInputFiles('input[type=file]', {
      name: 'survey.wasm',
      mimeType: 'application/wasm',
      buffer: Buffer.from(plugin),
    });
    await page.locator('main').getByRole('button', { name: 'Upload', exact: true }).last().click();
    const row = page.getByRole('row', { name: /export/ });
    t.match(await row.getByRole('cell').nth(1).textContent(), /policy/i, 'what the form opens with');
    await page.getByRole('button', { name: 'Set it up', exact: true }).click();
    await page.getByRole('radio', { name: /Only people with a role/ }).check();
    await page.locator('main input[required]').click();
    await page.getByRole('option', { name: /student.*imports give it/ }).click();
    await page.getByText('Commands stay open to every user until you change them on the Access tab: /survey').waitFor();
    const kept = page.getByRole('checkbox', { name: 'Keep the policy of the author for: export' });
    t.ok(await kept.isChecked());
    await kept.uncheck();
    await page.getByText('This opens more than the author suggests for: export').waitFor();
    await kept.check();
    t.same(await axe(), []);
    await page.getByRole('button', { name: 'Install', exact: true }).click();
    await page.getByText('No person has the role student yet').waitFor();
    const headers = await sessionOf(s);
    const { items } = (await request(`${s.base}/api/admin/plugins/survey/triggers`, { headers })).json;
    t.same(
      (items as Json[]).map(i => [i.trigger, i.policy_expression]),
      [
        ['answer', 'has_role("student")'],
        ['export', 'has_role("teacher")'],
      ],
    );
    t.same(errors, []);
  },
);

t.test('an upgrade keeps what was set, and what it asks for more must be accepted', async t => {
  const config = [{ type: 'string', name: 'greeting', description: 'The word', required: true, sensitive: false }];
  const network = { kind: 'network', description: 'Asks the weather', config };
  const plugin = (version: string, more: Array<Record<string, unknown>>): Uint8Array =>
    watPlugin({ id: 'weather', version, requirements: [network, ...more], handle: '(i32.const 0)' });
  const { errors, open, page } = await startAdminBrowser(t, {
    prepare: s =>
      s.install(plugin('1.0.0', []), { greeting: 'Hello', network: { hosts: ['api.example.org'], private: [] } }),
  });
  await open('/admin/plugins/upload');
  const buffer = Buffer.from(plugin('2.0.0', [{ kind: 'kv', description: 'Remembers the weather' }]));
  const notes = { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('notes') };
  await page.setInputFiles('input[type=file]', [notes, { name: 'weather.wasm', mimeType: 'application/wasm', buffer }]);
  await page.getByText('Left out: notes.txt.').waitFor();
  await page.locator('main').getByRole('button', { name: 'Upload', exact: true }).last().click();
  await page.getByText('replaces 1.0.0').waitFor();
  t.equal(await page.getByText('Compared with what is installed').count(), 0, 'nothing is lost');
  await page.getByRole('button', { name: 'Set it up', exact: true }).click();
  t.equal(await page.getByRole('textbox', { name: 'greeting' }).inputValue(), 'Hello');
  await page.getByText('api.example.org').first().waitFor();
  const install = page.getByRole('button', { name: 'Install this version' });
  t.ok(await install.isDisabled(), 'not before the new permission is accepted');
  await page.getByLabel('I accept that it may do this from now on').check();
  await install.click();
  await page.getByText('2.0.0 runs').waitFor();
  await open('/admin/plugins/weather?tab=settings');
  await page.getByText('api.example.org').waitFor();
  await page.getByText('Hello', { exact: true }).waitFor();

  await open('/admin/plugins/upload');
  const access = { users: true, policy: 'has_role("tutor")', reason: 'Tutors see it' };
  const trigger = { name: 'close', type: 'http', path: '/close', methods: ['GET'], access };
  const other = watPlugin({
    id: 'weather',
    name: 'Climate',
    version: '1.5.0',
    triggers: [trigger],
    handle: 'unreachable',
  });
  const file = { name: 'other.wasm', mimeType: 'application/wasm', buffer: Buffer.from(other) };
  await page.setInputFiles('input[type=file]', file);
  await page.locator('main').getByRole('button', { name: 'Upload', exact: true }).last().click();
  await page.getByText('It has another name: “Climate”').waitFor();
  await page.getByText('Its number is lower than that of the installed version 2.0.0.').waitFor();
  await page.getByText(/It no longer answers: .*\/run/).waitFor();
  await page.getByText('has_role("tutor")').waitFor();
  await page.getByRole('button', { name: 'Set it up', exact: true }).click();
  t.ok(await page.getByRole('radio', { name: 'As its author suggests' }).isChecked(), 'it opens less than the default');
  await page.getByRole('radio', { name: 'All logged-in users' }).check();
  await page.getByText('This opens more than the author suggests for: close.').waitFor();
  await install.click();
  await page.getByText('Climate 1.5.0 runs').waitFor();
  await page.getByRole('button', { name: 'Call', exact: true }).click();
  await page.getByText('HTTP 502').waitFor();
  await page.getByRole('link', { name: 'What happened in it' }).click();
  await page.getByRole('table', { name: 'Executions' }).getByText('close').waitFor();
  t.same(errors, []);
});
