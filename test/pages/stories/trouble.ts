import type { Response } from 'playwright-core';
import t from 'tap';
import { ru } from '../../../admin/src/texts/ru.ts';
import { openDatabase } from '../../../src/db/database.ts';
import { EMAIL, PASSWORD, sessionOf, startAdminBrowser } from '../../support/admin-browser.ts';
import { makeDatabase } from '../../support/database.ts';
import { startGraphStore } from '../../support/graph.ts';
import { startMailServer } from '../../support/mail-server.ts';
import { startTelegram, startVk } from '../../support/messengers.ts';
import { request } from '../../support/service.ts';
import { databaseWay, storeWay } from '../../support/store-way.ts';
import { watPlugin } from '../../support/wat.ts';

/** What goes wrong is said in words, and nothing typed is lost. */

t.test('what another administrator has changed meanwhile is not overwritten, and what was typed stays', async t => {
  const { errors, open, page, s } = await startAdminBrowser(t, { sample: true });
  await open('/admin/plugins/hello/triggers/greet');
  const editor = page.getByRole('textbox', { name: 'Policy' });
  await editor.click();
  await page.keyboard.type('user.locale == "ru"');
  const session = await sessionOf(s);
  const path = `${s.base}/api/admin/plugins/hello/triggers/greet/settings`;
  const put = (settings: object) =>
    request(path, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', ...session },
      body: JSON.stringify(settings),
    });
  t.equal((await put({ policy_expression: 'has_role("teacher")' })).status, 200);
  await page.getByRole('button', { name: 'Save', exact: true }).first().click();
  const outdated = page.getByRole('alert').filter({ hasText: 'Something else was saved here meanwhile' });
  await outdated.getByText('has_role("teacher")').waitFor();
  t.match(await editor.textContent(), 'user.locale == "ru"', 'what was typed stays');
  const now = await request(path, { headers: session });
  t.equal(now.json.policy_expression, 'has_role("teacher")', 'nothing is overwritten');
  await page.getByRole('button', { name: 'History' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Put into the editor' }).first().waitFor();
  await page.keyboard.press('Escape');
  await outdated.getByRole('button', { name: 'Keep what I typed' }).click();
  await outdated.waitFor({ state: 'detached' });
  t.equal(await page.getByText('Nothing was saved').count(), 0, 'what was said of the draft is over');
  await page.getByRole('button', { name: 'Save', exact: true }).first().click();
  await page.getByText('Saved in greet: the policy').first().waitFor();
  t.equal((await request(path, { headers: session })).json.policy_expression, 'user.locale == "ru"', 'on purpose');

  // What is read again while something is typed takes nothing away, and the other's change is still not overwritten.
  await page.getByRole('button', { name: 'Set its own' }).click();
  await page.getByPlaceholder('https://www.example.org').fill('https://mine.example.org');
  await page.keyboard.press('Enter');
  t.equal((await put({ frontend_origins: ['https://theirs.example.org'] })).status, 200);
  await page.getByRole('switch', { name: 'Record executions of this trigger' }).click({ force: true });
  await page.getByText(/: origins\. Nothing was saved/).waitFor();
  await outdated.getByText('https://theirs.example.org').waitFor();
  await page.getByText('https://mine.example.org').waitFor();
  await outdated.getByRole('button', { name: 'Load what is saved' }).click();
  await page.getByText('https://mine.example.org').waitFor({ state: 'detached' });
  await page.getByText('https://theirs.example.org').waitFor();
  t.same(errors, []);
});

t.test('a restore that is given up leaves what was typed; roles of a command are not overwritten unseen', async t => {
  const command = watPlugin({ id: 'bot', triggers: [{ name: 'hi', type: 'messenger' }], handle: '(i32.const 0)' });
  const { errors, open, page, s } = await startAdminBrowser(t, { prepare: s => s.install(command) });
  const session = await sessionOf(s);
  const path = `${s.base}/api/admin/plugins/bot/commands/hi`;
  const settings = async () => (await request(`${path}/settings`, { headers: session })).json;
  const save = page.getByRole('button', { name: 'Save', exact: true });
  const outdated = page.getByRole('alert').filter({ hasText: 'Something else was saved here meanwhile' });
  await open('/admin/plugins/bot/commands/hi');
  const role = page.getByLabel('System role');
  await role.fill(' dean ');
  await save.first().click();
  await page.getByText('Saved in /hi: Roles').first().waitFor();
  t.equal((await settings()).system_role, 'dean');
  await page.locator('input[value="dean"]').waitFor();
  t.equal(await outdated.count(), 0, 'one’s own change is not another’s');

  await page.getByLabel('Role of this plugin').fill('helper');
  const put = (roles: object) =>
    request(`${path}/roles`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', ...session },
      body: JSON.stringify({ system_role: null, global_roles: [], plugin_role: null, ...roles }),
    });
  t.equal((await put({ global_roles: ['staff'] })).status, 200);
  await save.first().click();
  await outdated.getByText('Global roles: staff').waitFor();
  t.match(await settings(), { system_role: null, global_roles: ['staff'], plugin_role: null });
  await outdated.getByRole('button', { name: 'Load what is saved' }).click();
  await page.locator('input[value="dean"]').waitFor({ state: 'detached' });
  t.equal(await role.inputValue(), '');

  // Also when another administrator saves what was saved here before, and the page happens to read it.
  const isRead = (r: Response): boolean => r.request().method() === 'GET' && r.url().endsWith('/hi/settings');
  await role.fill('dean');
  await Promise.all([page.waitForResponse(isRead), save.first().click()]);
  t.equal((await put({})).status, 200);
  await page.getByRole('switch').click({ force: true });
  await page.locator('input[value="dean"]').waitFor({ state: 'detached' });
  await page.getByLabel('Role of this plugin').fill('helper');
  t.equal((await put({ system_role: 'dean', global_roles: ['staff'] })).status, 200);
  await page.getByRole('switch').click({ force: true });
  await outdated.getByText('System role: dean').waitFor();
  await outdated.getByRole('button', { name: 'Load what is saved' }).click();
  await outdated.waitFor({ state: 'detached' });

  const editor = page.locator('.cm-content');
  await editor.click();
  await page.keyboard.type('true');
  await page.keyboard.press('Escape');
  await save.last().click();
  await page.getByRole('button', { name: 'Discard' }).and(page.locator(':disabled:not([data-loading])')).waitFor();
  await editor.click();
  await page.keyboard.press('End');
  await page.keyboard.type(' && 1 < 2');
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  await db.query("UPDATE sessions SET password_at = password_at - interval '1 hour'");
  await page.getByRole('button', { name: 'History' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).first().click();
  const replace = page.getByRole('dialog').filter({ hasText: 'Replace what you have typed?' });
  await replace.getByRole('button', { name: 'Replace it' }).click();
  const question = page.getByRole('dialog').filter({ hasText: 'Confirm that it is you' });
  await question.getByRole('button', { name: 'Cancel' }).last().click();
  await question.waitFor({ state: 'detached' });
  await page.keyboard.press('Escape');
  t.equal(await editor.textContent(), 'true && 1 < 2');
  t.same(errors, []);
});

t.test('a change is not taken back over what another administrator has changed since', async t => {
  const { errors, open, page, s } = await startAdminBrowser(t, { sample: true });
  const session = await sessionOf(s);
  const path = `${s.base}/api/admin/plugins/hello/triggers/greet/settings`;
  const put = (settings: object) =>
    request(path, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', ...session },
      body: JSON.stringify(settings),
    });
  t.equal((await put({ allow_user_session: false, allow_service_key: true })).status, 200);
  await open('/admin/plugins/hello?tab=access');
  await page.getByLabel('greet: Users').click({ force: true });
  await page.getByText('Saved in greet: Users – on').waitFor();
  t.equal((await put({ enabled: false })).status, 200);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page
    .getByText('The change of greet was not taken back: meanwhile another administrator changed enabled.')
    .waitFor();
  await page.getByText('Disabled', { exact: true }).waitFor();
  t.match((await request(path, { headers: session })).json, { enabled: false, allow_user_session: true });

  // Alone, one click takes back that one change.
  await page.getByLabel('greet: Service keys').click({ force: true });
  await page.getByText('Saved in greet: Service keys – off').waitFor();
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('button', { name: 'Undo' }).waitFor({ state: 'detached' });
  await page.locator('input[aria-label="greet: Service keys"]:checked').waitFor({ state: 'attached' });
  t.match((await request(path, { headers: session })).json, { enabled: false, allow_user_session: true });

  // A question that is answered with Cancel changes nothing, and is no failure.
  t.equal((await put({ enabled: true, allow_user_session: false })).status, 200);
  await open('/admin/plugins/hello?tab=access');
  await page.getByLabel('greet: Service keys').click({ force: true });
  await page.getByText('This makes it public').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).last().click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  t.match((await request(path, { headers: session })).json, { allow_service_key: true });

  // What another administrator has done already is nothing of one's own to take back.
  t.equal((await put({ allow_user_session: true })).status, 200);
  const sent: string[] = [];
  page.on('request', r => void (r.url().endsWith('/settings') && sent.push(r.method())));
  await page.getByLabel('greet: Users').click({ force: true });
  await page.locator('input[aria-label="greet: Users"]:checked').waitFor({ state: 'attached' });
  t.ok(sent.includes('GET') && !sent.includes('PUT'), 'nothing is changed, so there is nothing to undo');
  t.equal(await page.getByText('confirmation').count(), 0, 'and nothing was said of the question');
  t.same(errors, []);
});

t.test('what is not there is said on a page with a way back', async t => {
  const { axe, open, page } = await startAdminBrowser(t);
  for (const [path, back] of [
    ['plugins/missing', 'Plugins'],
    ['plugins/missing/triggers/none', 'Plugins'],
    ['plugins/missing/commands/none', 'Plugins'],
    ['plugins/missing/executions/1', 'Plugins'],
    ['people/77', 'People'],
  ] as const) {
    await open(`/admin/${path}`);
    await page.getByRole('alert').getByText('Not found').waitFor();
    t.equal(await page.getByRole('button', { name: 'Try again' }).count(), 0, path);
    t.equal(await page.getByRole('main').getByRole('heading', { level: 1 }).count(), 1, path);
    await page.getByRole('main').getByRole('link', { name: back, exact: true }).first().waitFor();
  }
  t.same(await axe(), []);
});

t.test('a service that cannot be reached is said in words, and the same click works when it is back', async t => {
  const { context, open, page, s } = await startAdminBrowser(t, { sample: true });
  await open('/admin/plugins/hello?tab=access');
  const origins = page.getByPlaceholder('https://www.example.org');
  await origins.fill('https://students.example.org');
  await origins.press('Enter');
  await context.setOffline(true);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page
    .getByText(/cannot be reached|does not answer/)
    .first()
    .waitFor();
  await page.getByText('https://students.example.org').first().waitFor();
  await context.setOffline(false);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('The origins are saved').waitFor();
  await open('/admin/plugins');
  await page.getByRole('link', { name: 'Hello' }).waitFor();
  await context.setOffline(true);
  await page.getByRole('searchbox').fill('hel');
  await page.getByRole('button', { name: 'Try again' }).waitFor({ timeout: 60_000 });
  await context.setOffline(false);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('link', { name: 'Hello' }).waitFor();
  t.match(page.url(), /search=hel/);

  // What was done although its answer was lost is done once.
  let posts = 0;
  await page.route('**/api/admin/users', async route => {
    if (route.request().method() !== 'POST' || posts++ > 0) return await route.continue();
    await route.fetch();
    await route.abort();
  });
  await open('/admin/people?add=1');
  const person = page.getByRole('dialog');
  await person.getByLabel('Name').fill('Once');
  await person.getByRole('button', { name: 'Add a person' }).click();
  await person.getByRole('alert').waitFor();
  await person.getByRole('button', { name: 'Add a person' }).click();
  await page.getByText('Once is added').waitFor();
  const { json } = await request(`${s.base}/api/admin/users?search=Once`, { headers: await sessionOf(s) });
  t.same([posts, (json.items as unknown[]).length], [2, 1]);
});

t.test('a session that ends is begun again over the page, and what was typed is sent', async t => {
  const { context, errors, page, open } = await startAdminBrowser(t, { sample: true });
  await open('/admin/plugins/hello?tab=access');
  const origins = page.getByPlaceholder('https://www.example.org');
  await origins.fill('https://students.example.org');
  await origins.press('Enter');
  await context.clearCookies();
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Your session has ended').waitFor();
  await page.keyboard.press('Escape');
  await page.getByText('You are not logged in any more.').waitFor();
  t.equal(await page.getByText('/api/').count(), 0, 'how a program logs in is of no use here');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await dialog.getByText('Your session has ended').waitFor();
  await dialog.getByLabel('Email').fill(EMAIL);
  await dialog.getByRole('textbox', { name: 'Password' }).fill(PASSWORD);
  await dialog.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.getByText('The origins are saved').waitFor();
  await page.reload();
  await page.getByText('https://students.example.org').first().waitFor();

  // What comes by itself asks once for a login that is declined.
  await open('/admin/');
  await page.getByRole('heading', { name: 'Overview' }).first().waitFor();
  await page.waitForResponse(r => r.status() === 200 && r.url().includes('/api/admin/'));
  const [held, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await page.route('**/api/admin/hosts', async route => {
    const response = await route.fetch();
    if (response.status() === 401) {
      held.resolve();
      await late.promise;
    }
    await route.fulfill({ response });
  });
  await context.clearCookies();
  await dialog.getByText('Your session has ended').waitFor();
  // Also what is refused while one types in the question that one then declines.
  await held.promise;
  const refused = page.waitForResponse(r => r.status() === 401 && r.url().endsWith('/hosts'));
  await dialog.getByLabel('Email').press('a');
  late.resolve();
  await refused;
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  for (let k = 0; k < 3; k++) await page.waitForResponse(r => r.status() === 401);
  t.equal(await dialog.count(), 0);
  t.same(errors, []);
});

t.test('what is away is said, with what still works and what to do, and taken back when it is there', async t => {
  const [database, smtp, telegram, vk] = [
    await makeDatabase(),
    await startMailServer(),
    await startTelegram(t),
    await startVk(t),
  ];
  const { spicedb } = await startGraphStore(t);
  const portOf = (base: string): number => Number(new URL(base).port);
  const ways = {
    mail: await storeWay(smtp.port),
    telegram: await storeWay(portOf(telegram.base)),
    vk: await storeWay(portOf(vk.base)),
    graph: await storeWay(spicedb.endpoint.replace(/^unix:/, '')),
    database: await databaseWay(database.url),
  };
  const env = {
    ...telegram.env(),
    ...vk.env(),
    BOT_MESSENGERS_TELEGRAM_API_URL: `http://127.0.0.1:${ways.telegram.port}`,
    BOT_MESSENGERS_VK_API_URL: `http://127.0.0.1:${ways.vk.port}`,
    BOT_SMTP_HOST: '127.0.0.1',
    BOT_SMTP_PORT: String(ways.mail.port),
    BOT_SMTP_FROM: 'plugins@uni.example',
    BOT_SPICEDB_ENDPOINT: `127.0.0.1:${ways.graph.port}`,
    BOT_SPICEDB_TOKEN: 'any',
    BOT_SPICEDB_TLS: 'false',
    BOT_DATABASE_URL: ways.database.url,
  };
  t.teardown(async () => {
    for (const way of Object.values(ways)) way.close();
    await smtp.close();
    await database.drop();
  });
  const { axe, errors, page } = await startAdminBrowser(t, { env, language: 'ru-RU', width: 320 });
  t.teardown(() => ways.database.mend());
  const well = page.getByText(ru.attention.none);
  await well.waitFor();
  for (const name of ['mail', 'telegram', 'vk', 'graph', 'database'] as const) {
    const { help, title, works } = ru.away[name];
    ways[name].cut();
    const cut = performance.now();
    await page.getByText(title).waitFor();
    t.comment(`${name}: seen after ${Math.round(performance.now() - cut)} ms`);
    for (const words of [works, help]) t.ok(await page.getByText(words).isVisible(), `${name}: ${words}`);
    t.same(await axe(), [], name);
    if (name === 'database') {
      await page.reload();
      await page.getByText(title).waitFor();
      t.same(await axe(), [], 'a page that is opened meanwhile');
    }
    ways[name].mend();
    const mended = performance.now();
    await page.getByText(title).waitFor({ state: 'detached' });
    await well.waitFor();
    t.comment(`${name}: taken back after ${Math.round(performance.now() - mended)} ms`);
  }
  t.same(errors, []);
});
