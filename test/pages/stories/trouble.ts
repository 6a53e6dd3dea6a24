import t from 'tap';
import { EMAIL, PASSWORD, sessionOf, startAdminBrowser } from '../../support/admin-browser.ts';
import { request } from '../../support/service.ts';

/** What goes wrong is said in words, and nothing typed is lost. */

t.test('what another administrator has changed meanwhile is not overwritten, and what was typed stays', async t => {
  const { errors, open, page, s } = await startAdminBrowser(t, { sample: true });
  await open('/admin/plugins/hello/triggers/greet');
  const editor = page.getByRole('textbox', { name: 'Policy' });
  await editor.click();
  await page.keyboard.type('user.locale == "ru"');
  const session = await sessionOf(s);
  const path = `${s.base}/api/admin/plugins/hello/triggers/greet/settings`;
  const changed = await request(path, {
    method: 'PUT',
    headers: { 'content-type': 'application/json', ...session },
    body: JSON.stringify({ policy_expression: 'has_role("teacher")' }),
  });
  t.equal(changed.status, 200);
  await page.getByRole('button', { name: 'Save', exact: true }).first().click();
  await page
    .getByRole('alert')
    .getByText(/meanwhile|changed since/i)
    .first()
    .waitFor();
  t.match(await editor.textContent(), 'user.locale == "ru"', 'what was typed stays');
  const now = await request(path, { headers: session });
  t.equal(now.json.policy_expression, 'has_role("teacher")', 'nothing is overwritten');
  t.same(errors, []);
});

t.test('a service that cannot be reached is said in words, and the same click works when it is back', async t => {
  const { context, open, page } = await startAdminBrowser(t, { sample: true });
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
