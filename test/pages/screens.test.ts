import t from 'tap';
import { EMAIL, logIn, logOut, PASSWORD, startAdminBrowser } from '../support/admin-browser.ts';
import { startMailServer } from '../support/mail-server.ts';
import { takePort } from '../support/ports.ts';
import { SCREENS } from './screens.ts';

/** All screens: they can be read and reached in both languages, in both colour schemes, on any width. */

/** Those that `first-plugin.test.ts` looks at in English on its way. */
const SEEN = new Set([
  '/admin/',
  '/admin/plugins/upload',
  '/admin/plugins/hello',
  '/admin/plugins/hello?tab=access',
  '/admin/plugins/hello/triggers/greet',
  '/admin/why?user=1&plugin=hello&trigger=greet',
]);

/** Screens whose rows and filters have another order on a tablet. */
const WIDE = new Set([
  '/admin/',
  '/admin/plugins/hello?tab=access',
  '/admin/relationships',
  '/admin/university',
  '/admin/people',
  '/admin/audit',
]);

for (const [language, colorScheme, width, screens] of [
  ['en-GB', 'light', 1280, SCREENS.filter(s => !SEEN.has(s))],
  ['ru-RU', 'dark', 320, SCREENS],
  ['ru-RU', 'light', 768, SCREENS.filter(s => WIDE.has(s))],
] as const)
  t.test(`every screen in ${language}, ${colorScheme}, ${width} pixels wide`, async t => {
    const { axe, errors, open, page } = await startAdminBrowser(t, { colorScheme, language, sample: true, width });
    for (const screen of screens) {
      await open(screen);
      const heading = page.getByRole('heading').first();
      await heading.waitFor();
      await page.locator('.mantine-Loader-root, [aria-busy=true]').first().waitFor({ state: 'detached' });
      t.same(await axe(), [], `axe: ${screen}`);
      t.notOk(
        await page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth'),
        `${screen} is not wider than the window`,
      );
      if (language === 'ru-RU')
        t.match(await page.locator('main').textContent(), /[а-яё]{3}/i, `${screen} is in Russian`);
    }
    t.same(errors, []);
  });

t.test('an administrator appoints another one, and sees what becomes of the mail', async t => {
  const port = await takePort();
  const env = { BOT_SMTP_HOST: '127.0.0.1', BOT_SMTP_PORT: String(port) };
  const { errors, page, s, open } = await startAdminBrowser(t, { env, people: [{ display_name: 'Grace' }] });
  await open('/admin/administrators');
  await page.getByRole('button', { name: 'Appoint an administrator' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByPlaceholder('Name or id').fill('Grace');
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
  await dialog.getByLabel('Email').fill(EMAIL);
  await dialog.getByRole('textbox', { name: 'Password' }).fill(PASSWORD);
  await dialog.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.getByText('The origins are saved').waitFor();
  await page.reload();
  await page.getByText('https://students.example.org').first().waitFor();
  t.same(errors, []);
});
