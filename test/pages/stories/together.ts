import t from 'tap';
import { EMAIL, goTo, PASSWORD, sessionOf, startAdminBrowser } from '../../support/admin-browser.ts';
import { type Json, request } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { okPlugin } from '../../support/wat.ts';

/** Administrators who work at the same time, sessions that end, and what is done without a mouse or on a small screen. */

const FIELD = 'smtp.host';
const DOTTED = okPlugin('dotted', {
  requirements: [
    {
      kind: 'network',
      description: 'Sends',
      config: [{ name: FIELD, description: 'Where', required: true, sensitive: false }],
    },
  ],
});

t.test('what another administrator does meanwhile is not undone unseen', async t => {
  let dotted: Json = {};
  const { errors, open, page, s } = await startAdminBrowser(t, {
    sample: true,
    people: [{ display_name: 'Grace', external_id: 's-12' }],
    async prepare(s) {
      dotted = (await s.upload(DOTTED)).json;
      await s.admin('POST', '/events/subscriptions', { name: 'archive', url: 'https://archive.example/events' });
    },
  });
  const session = await sessionOf(s);
  const send = (method: string, path: string, body?: unknown) =>
    request(`${s.base}/api/admin${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...session },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const greet = '/plugins/hello/triggers/greet/settings';
  const dialog = page.getByRole('dialog');

  await t.test('a person is changed where one has typed, and nowhere else', async t => {
    const [person] = (await send('GET', '/users?search=Grace')).json.items as Json[];
    await open(`/admin/people/${person?.id}`);
    await page.getByRole('button', { name: 'Edit' }).first().click();
    await dialog.getByLabel('Name').fill('Grace Hopper');
    await page.keyboard.press('Escape');
    await dialog.filter({ hasText: 'Leave this page?' }).getByRole('button', { name: 'Cancel' }).last().click();
    await page.getByText('Leave this page?').waitFor({ state: 'detached' });
    t.equal(await dialog.getByLabel('Name').inputValue(), 'Grace Hopper', 'nothing typed is lost by a key');
    t.equal((await send('PATCH', `/users/${person?.id}`, { external_id: 's-99' })).status, 200);
    // The page reads again what it has read some seconds ago, when one comes back to its window.
    await page.evaluate('Date.now = (now => () => now() + 60_000)(Date.now)');
    await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
    await page.getByText('s-99').first().waitFor();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'Grace Hopper', exact: true }).waitFor();
    await dialog.waitFor({ state: 'detached' });
    t.match((await send('GET', `/users/${person?.id}`)).json, { display_name: 'Grace Hopper', external_id: 's-99' });
  });

  await t.test('a rule by role leaves disabled what is disabled, and replaces only what it has shown', async t => {
    t.equal((await send('PUT', greet, { enabled: false })).status, 200);
    await goTo(page, '/admin/plugins/hello?tab=access');
    await page.getByRole('button', { name: 'Only people with a role' }).click();
    await dialog.getByLabel('Role').fill('teacher');
    await dialog.getByText('Disabled, and stays so: greet').waitFor();
    t.equal(
      (await send('PUT', greet, { policy_expression: 'user.locale == "ru"', allow_user_session: true })).status,
      200,
    );
    await dialog.getByRole('button', { name: 'Let only them in' }).click();
    await dialog.getByText('The policy of greet was changed meanwhile').waitFor();
    await dialog.getByText('This replaces the policy of: greet').waitFor();
    await dialog.getByRole('button', { name: 'Let only them in' }).click();
    await dialog.waitFor({ state: 'detached' });
    t.match((await send('GET', greet)).json, { enabled: false, policy_expression: 'has_role("teacher")' });
  });

  await t.test('switches that are clicked one after the other are all set', async t => {
    await page.getByRole('switch', { name: 'greet: Enabled' }).click({ force: true, noWaitAfter: true });
    await page.getByRole('switch', { name: 'greet: Service keys' }).click({ force: true, noWaitAfter: true });
    await page.getByRole('switch', { name: 'greet: Service keys', checked: true }).waitFor();
    t.match((await send('GET', greet)).json, { enabled: true, allow_service_key: true });
  });

  await t.test('a plugin is turned off only as it was shown', async t => {
    await goTo(page, '/admin/plugins/hello');
    const origins = ['https://menu.example.org'];
    t.equal((await send('PUT', '/plugins/hello/origins', { origins })).status, 200);
    const turnOff = async (): Promise<void> => {
      await page.getByRole('button', { name: 'More actions' }).click();
      await page.getByRole('menuitem', { name: 'Disable' }).click();
      await dialog.getByRole('button', { name: 'Disable' }).click();
    };
    await turnOff();
    await page.getByText('Nothing was saved').waitFor();
    t.equal((await send('GET', '/plugins/hello')).json.state, 'enabled');
    await turnOff();
    await until(async () => (await send('GET', '/plugins/hello')).json.state === 'disabled');
    t.equal((await send('POST', '/plugins/hello/enable')).status, 200);
  });

  await t.test('a policy that is restored and makes a trigger public is asked about', async t => {
    for (const policy_expression of ['', 'true'])
      t.equal((await send('PUT', greet, { policy_expression, allow_service_key: false })).status, 200);
    t.equal((await send('PUT', greet, { allow_user_session: false })).status, 200);
    await goTo(page, '/admin/plugins/hello/triggers/greet');
    await page.getByRole('button', { name: 'History' }).click();
    await dialog.getByRole('button', { name: 'Restore' }).nth(1).click();
    await page.getByText('This makes it public').waitFor();
    await page.getByRole('button', { name: 'Open it to every caller' }).click();
    await until(async () => (await send('GET', greet)).json.effective_access === 'public');
  });

  await t.test(
    'a name with a dot is typed like any other, and an installation on an outdated page is refused',
    async t => {
      await goTo(page, `/admin/plugins/upload?id=dotted&key=${String(dotted.wasm_key)}&step=settings`);
      // What failed on the screen before goes with it. By itself it would lie over the buttons for 30 seconds.
      await page.getByText('Nothing was saved').waitFor({ state: 'detached', timeout: 15_000 });
      await page.getByLabel(FIELD).fill('mail.example.org');
      await page.getByRole('link', { name: 'Executions' }).first().click();
      await dialog.filter({ hasText: 'Leave this page?' }).getByRole('button', { name: 'Cancel' }).last().click();
      await dialog.waitFor({ state: 'detached' });
      t.equal(await page.getByLabel(FIELD).inputValue(), 'mail.example.org', 'nothing typed is lost by a click');
      const accept = page.getByRole('checkbox', { name: 'accept' });
      if ((await accept.count()) > 0) await accept.check();
      await page.getByRole('button', { name: 'Install', exact: true }).click();
      const configured = async () => {
        const { config } = (await send('GET', '/plugins/dotted')).json;
        return Array.isArray(config) ? Object(config[0]).value : null;
      };
      await page.waitForURL(/step=done/);
      t.equal(await configured(), 'mail.example.org');

      await goTo(page, `/admin/plugins/upload?id=dotted&key=${String(dotted.wasm_key)}&step=settings`);
      await page.getByLabel(FIELD).fill('mine.example.org');
      const theirs = { wasm_key: dotted.wasm_key, config: { [FIELD]: 'theirs.example.org' } };
      t.equal((await send('POST', '/plugins/dotted/install', theirs)).status, 200);
      await page.getByLabel(FIELD).press('Enter');
      await page.getByRole('alert').filter({ hasText: 'Nothing was saved' }).waitFor();
      t.equal(await configured(), 'theirs.example.org');
      await page.getByText('Another administrator has set: theirs.example.org.').waitFor();
      t.equal(await page.getByLabel(FIELD).inputValue(), 'mine.example.org', 'what was typed stays');
      await page.getByLabel(FIELD).press('Enter');
      await page.waitForURL(/step=done/);
      t.equal(await configured(), 'mine.example.org');
    },
  );

  await t.test('a subscription has its menu', async () => {
    await goTo(page, '/admin/events?tab=subscriptions');
    await page.getByRole('link', { name: 'archive' }).click();
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'New secret' }).waitFor();
    await page.keyboard.press('Escape');
  });
  t.same(errors, []);
});

t.test('sessions end and begin, and keys open what they should', async t => {
  const { context, errors, open, page } = await startAdminBrowser(t, {
    sample: true,
    people: [{ display_name: 'Grace', external_id: 's-12' }],
    prepare: s => s.install(okPlugin('other')),
  });
  const dialog = page.getByRole('dialog');

  await t.test(
    'the palette opens by the key where it is on a Latin keyboard, and shows what the service finds',
    async () => {
      await page.evaluate(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'л', code: 'KeyK', ctrlKey: true, bubbles: true }))",
      );
      // Only the service knows the external id of this person.
      await page.getByPlaceholder('A screen, a plugin or a person').fill('s-12');
      await page.locator('.mantine-Spotlight-action', { hasText: 'Grace' }).waitFor();
      await page.getByPlaceholder('A screen, a plugin or a person').fill('account');
      await page.locator('.mantine-Spotlight-action', { hasText: 'Your account' }).click();
      await page.getByRole('heading', { name: 'Your account' }).first().waitFor();
    },
  );

  await t.test('a search follows the address', async t => {
    await goTo(page, '/admin/plugins?search=hel');
    const search = page.getByRole('searchbox');
    t.equal(await search.inputValue(), 'hel');
    await page.evaluate("history.pushState(null, '', '/admin/plugins')");
    await page.getByRole('link', { name: 'Test', exact: true }).waitFor();
    t.equal(await search.inputValue(), '');
  });

  await t.test('a page of another plugin begins with its own call', async t => {
    await goTo(page, '/admin/plugins/hello');
    await page.getByText('/hello/greet').first().waitFor();
    await page.evaluate("history.pushState(null, '', '/admin/plugins/other')");
    await page.getByText('/other/run').first().waitFor();
    t.equal(await page.getByText('/other/greet').count(), 0);
  });

  await t.test('a menu that is out of sight takes no focus', async t => {
    await page.setViewportSize({ width: 600, height: 800 });
    const burger = page.getByRole('button', { name: 'Menu', exact: true });
    t.equal(await burger.getAttribute('aria-expanded'), 'false');
    const isReached = (): Promise<boolean> =>
      page.evaluate(
        "(() => { const a = document.querySelector('nav a'); a.focus(); return document.activeElement === a; })()",
      );
    await until(async () => !(await isReached()));
    await burger.click();
    t.equal(await burger.getAttribute('aria-expanded'), 'true');
    t.equal(await isReached(), true);
    await page.keyboard.press('Escape');
    t.equal(await burger.getAttribute('aria-expanded'), 'false');
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  await t.test('requests of an ended session ask for one login', async t => {
    await context.clearCookies();
    await open('/admin/');
    await page.getByLabel('Email').fill(EMAIL);
    await page.locator('input[type=password]').fill(PASSWORD);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await context.clearCookies();
    // Several screens' worth of requests at once. None of them shows its rows, so nothing of the screen is waited for.
    await page.evaluate("history.pushState(null, '', '/admin/executions')");
    await dialog.getByText('Your session has ended').waitFor();
    await dialog.getByLabel('Email').fill(EMAIL);
    await dialog.locator('input[type=password]').fill(PASSWORD);
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await goTo(page, '/admin/');
    await page.waitForLoadState('networkidle');
    t.equal(await dialog.count(), 0, 'and then for none');
  });

  await t.test('a logout that does not get through is said, and the session goes on', async t => {
    await page.route('**/api/admin/auth/logout', route => route.abort());
    await page.getByRole('button', { name: 'Your account' }).click();
    await page.getByRole('menuitem', { name: 'Log out' }).click();
    await page
      .getByText(/cannot be reached|does not answer/)
      .first()
      .waitFor();
    t.equal(await page.getByRole('heading', { name: 'Overview' }).count(), 1);
    await page.unroute('**/api/admin/auth/logout');
    await page.getByRole('button', { name: 'Your account' }).click();
    await page.getByRole('menuitem', { name: 'Log out' }).click();
    await page.locator('input[type=email]').waitFor();
  });
  t.same(errors, []);
});

t.test('an uninstalled plugin is brought back', async t => {
  const { axe, errors, open, page } = await startAdminBrowser(t, {
    async prepare(s) {
      await s.install(okPlugin('away'));
      await s.admin('DELETE', '/plugins/away');
    },
  });
  await open('/admin/plugins');
  await page.getByRole('table', { name: 'Uninstalled' }).getByText('away').waitFor();
  t.same(await axe(), []);
  await page.getByRole('button', { name: 'Bring back: away 1.0.0' }).click();
  await page.getByText('away 1.0.0 is back, and can be installed').waitFor();
  await page.waitForURL(/upload\?.*id=away/);
  await page
    .getByText('Asks for nothing')
    .or(page.getByRole('heading', { name: 'Test' }))
    .first()
    .waitFor();
  await goTo(page, '/admin/plugins');
  await page.getByRole('link', { name: 'away' }).waitFor();
  t.equal(await page.getByRole('table', { name: 'Uninstalled' }).count(), 0);
  t.same(errors, []);
});
