import { Secret, TOTP } from 'otpauth';
import t from 'tap';
import { openDatabase } from '../../../src/db/database.ts';
import { EMAIL, logOut, PASSWORD, startAdminBrowser } from '../../support/admin-browser.ts';
import { plugInAuthenticator } from '../../support/browser-authenticator.ts';

/** The second factor in the pages, with the authenticator Chromium plays (`WebAuthn.addVirtualAuthenticator`). */

type Page = Awaited<ReturnType<typeof startAdminBrowser>>['page'];

async function givePassword(page: Page): Promise<void> {
  await page.getByLabel('Email').fill(EMAIL);
  await page.getByRole('textbox', { name: 'Password' }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
}

t.test('a passkey is added, completes a login, opens one alone, and counts as a recent password', async t => {
  const { axe, errors, open, page, s } = await startAdminBrowser(t);
  const authenticator = await plugInAuthenticator(page);
  await open('/admin/account');
  await page.getByRole('button', { name: 'Add a passkey' }).click();
  await page.getByLabel('Name of the passkey').fill('Laptop');
  t.same(await axe(), []);
  await page.getByRole('button', { name: 'Make the passkey' }).click();
  const codes = page.getByRole('dialog', { name: 'Your recovery codes' });
  await codes.waitFor();
  t.same(await axe(), []);
  t.equal(await codes.locator('code').count(), 10);
  await codes.getByRole('button', { name: 'I have kept them' }).click();
  await page.getByText('10 are left').waitFor();
  await page.getByText('Laptop').waitFor();

  await logOut(page);
  await givePassword(page);
  await page.getByText('Now use your passkey').waitFor();
  t.same(await axe(), []);
  await authenticator.verify(false);
  await page.getByRole('button', { name: 'Use a passkey' }).click();
  await page.getByText('It was broken off, or took too long').waitFor();
  await authenticator.verify(true);
  await page.getByRole('button', { name: 'Use a passkey' }).click();
  await page.locator('header').waitFor();

  await logOut(page);
  const alone = page.getByRole('button', { name: 'Log in with a passkey' });
  await alone.waitFor();
  t.same(await axe(), []);
  await authenticator.verify(false);
  await alone.click();
  await page.getByText('It was broken off, or took too long').waitFor();
  await authenticator.verify(true);
  await alone.click();
  await page.locator('header').waitFor();
  await page.getByRole('heading', { name: 'Your account' }).waitFor();

  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  await db.query("UPDATE sessions SET password_at = now() - interval '1 hour'");
  await open('/admin/account');
  await page.getByRole('button', { name: 'Make new ones' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Make new ones' }).click();
  const confirm = page.getByRole('dialog', { name: 'Confirm that it is you' });
  await confirm.getByRole('button', { name: 'Use a passkey' }).click();
  await codes.waitFor();
  await codes.getByRole('button', { name: 'I have kept them' }).click();
  t.same(errors, []);
});

t.test('where one is required, an app is added first; its codes and recovery codes complete logins', async t => {
  const env = { BOT_ADMIN_SECOND_FACTOR: 'required' };
  const { axe, errors, open, page, s } = await startAdminBrowser(t, { env, loggedIn: false, colorScheme: 'dark' });
  await s.admin('POST', '/auth/setup', { email: EMAIL, password: PASSWORD, name: 'Ada' });
  await open('/admin/plugins');
  await givePassword(page);
  await page.getByRole('heading', { name: 'Add a second factor' }).waitFor();
  await page.getByRole('button', { name: 'Add an authenticator app' }).click();
  await page.getByRole('img', { name: /QR code/ }).waitFor();
  t.same(await axe(), []);
  const secret = (await page.locator('code').first().textContent()) ?? '';
  const app = new TOTP({ secret: Secret.fromBase32(secret) });
  await page.getByLabel('Code of the app').fill('000000');
  await page.getByRole('button', { name: 'Add an authenticator app' }).click();
  await page.getByText('This is not the code the app shows now').waitFor();
  await page.getByLabel('Code of the app').fill(app.generate());
  await page.getByRole('button', { name: 'Add an authenticator app' }).click();
  const dialog = page.getByRole('dialog', { name: 'Your recovery codes' });
  await dialog.waitFor();
  const [code = '', another = ''] = await dialog.locator('code').allTextContents();
  await dialog.getByRole('button', { name: 'I have kept them' }).click();
  await page.getByRole('heading', { name: 'Plugins', level: 1 }).waitFor();

  await logOut(page);
  await givePassword(page);
  await page.getByLabel('Code of the app').fill(app.generate({ timestamp: Date.now() + 30_000 }));
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.locator('header').waitFor();

  await logOut(page);
  await givePassword(page);
  await page.getByRole('button', { name: 'Use a recovery code instead' }).click();
  await page.getByLabel('Recovery code').fill(code);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.locator('header').waitFor();
  await open('/admin/account');
  await page.getByText('9 are left').waitFor();

  // This browser knows its administrator now.
  await logOut(page);
  await page.getByRole('button', { name: 'Log in with a recovery code' }).click();
  await page.getByText('stands for your password in this browser').waitFor();
  t.same(await axe(), []);
  await page.getByLabel('Recovery code').fill('aaaaa-aaaaa');
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.getByText('This code was not accepted').waitFor();
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  await db.query('DELETE FROM login_failures');
  await page.getByRole('status').waitFor({ state: 'detached' });
  await page.getByLabel('Recovery code').fill(another);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.getByText('8 are left').waitFor();
  t.same(errors, []);
});
