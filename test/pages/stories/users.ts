import t from 'tap';
import { startAdminBrowser } from '../../support/admin-browser.ts';
import { CLIENT, startIdentityProvider } from '../../support/identity-provider.ts';
import { request } from '../../support/service.ts';

/** The pages of users, `/account/` and `/messengers/`. */

t.test('without an identity provider the pages of users say what is missing', async t => {
  const { axe, errors, open, page } = await startAdminBrowser(t, { loggedIn: false, width: 320 });
  for (const path of ['/account/', '/messengers/']) {
    await open(path);
    await page.getByText('No login for users is set up').waitFor();
    await page.getByText('idp.issuer').waitFor();
    t.same(await axe(), [], path);
  }
  await page.getByRole('link', { name: 'Administration' }).click();
  await page.waitForURL('**/admin/**');
  t.same(errors, []);
});

t.test('a user with a session makes and revokes tokens, ends sessions, and logs out', async t => {
  const { axe, context, errors, open, page, s } = await startAdminBrowser(t, { sample: true });
  await open('/account/');
  await page.getByRole('heading', { name: 'Your account' }).waitFor();
  await page.getByText('No token yet').waitFor();
  const toAdmin = page.getByRole('link', { name: 'Administration' });
  t.equal(await toAdmin.getAttribute('href'), '/admin/', 'an administrator finds the way back');
  await page.getByLabel('Name').fill('timetable bot');
  await page.getByRole('button', { name: 'Make a token' }).click();
  const dialog = page.getByRole('dialog', { name: 'The token “timetable bot”' });
  const token = (await dialog.locator('code').textContent()) ?? '';
  t.match(token, /^pht_/);
  t.same(await axe(), []);
  await dialog.getByRole('button').last().click();
  const headers = { authorization: `Bearer ${token}` };
  const withToken = () => request(`${s.base}/api/messengers/accounts`, { headers });
  t.same((await withToken()).json, { items: [], bots: [] });
  await page.getByRole('button', { name: 'Revoke timetable bot' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('No token yet').waitFor();
  t.equal((await withToken()).status, 401);
  await page.getByText('this session').waitFor();
  t.same(await axe(), []);

  await page.getByRole('tab', { name: 'Messengers' }).click();
  await page.getByText('This service has no bot').waitFor();
  t.same(await axe(), []);

  // A page whose session has ended offers the way in as soon as it notices.
  await open('/account/');
  await page.getByText('No token yet').waitFor();
  await context.clearCookies();
  await page.getByLabel('Name').fill('late');
  await page.getByRole('button', { name: 'Make a token' }).click();
  await page.getByText('No login for users is set up').waitFor();
  await page.reload();
  await page.getByText('No login for users is set up').waitFor();
  t.same(errors, []);
});

t.test('with an identity provider a user logs in from the page and comes back to it', async t => {
  const provider = await startIdentityProvider();
  t.teardown(() => provider.close());
  const env = { BOT_IDP_ISSUER: provider.issuer, BOT_IDP_CLIENT_ID: CLIENT.id, BOT_IDP_CLIENT_SECRET: CLIENT.secret };
  const { axe, errors, open, page, s } = await startAdminBrowser(t, {
    ...{ env, loggedIn: false, language: 'ru-RU', colorScheme: 'dark' },
  });
  provider.open(`${s.base}/api/auth/idp/callback`);
  await open('/messengers/');
  await page.getByText('Войти через учётную запись университета').waitFor();
  t.same(await axe(), []);
  t.match(
    await page.getByRole('link', { name: /Войти/ }).getAttribute('href'),
    '/api/auth/idp/start?return_to=%2Fmessengers%2F',
  );
  t.same(errors, []);
});
