import t from 'tap';
import { freePort } from '../../src/supervisor/embedded-postgres.ts';
import { startBrowser } from '../support/browser.ts';
import { startMailServer } from '../support/mail-server.ts';
import { buildExample } from '../support/sdk.ts';
import { request, startTestService, TOKEN } from '../support/service.ts';

t.test('the setup link leads to a page that loads nothing from elsewhere', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const page = await request(`${s.base}/admin/`);
  t.equal(page.status, 200);
  t.match(page.headers.get('content-type'), 'text/html');
  t.match(page.headers.get('content-security-policy'), /default-src 'self'.*frame-ancestors 'none'/);
  for (const [, path] of page.text.matchAll(/<(?:script|link)[^>]+(?:src|href)="([^"]+)"/g)) {
    t.match(path, /^\/admin\//);
    t.equal((await request(`${s.base}${path ?? ''}`)).status, 200, path ?? '');
  }
  for (const path of ['/', '/admin']) t.equal((await request(`${s.base}${path}`)).headers.get('location'), '/admin/');
  t.equal((await request(`${s.base}/admin/../package.json`)).status, 404);
});

t.test('in a browser: the first administrator appoints another one and sees what became of the mail', async t => {
  const port = await freePort();
  const s = await startTestService({ BOT_SMTP_HOST: '127.0.0.1', BOT_SMTP_PORT: String(port) });
  t.teardown(() => s.stop());
  await s.admin('POST', '/users', { display_name: 'Ada' });
  const browser = await startBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage();
  const errors: string[] = [];
  page.on('pageerror', error => errors.push(error.message));
  await page.goto(`${s.base}/admin/#token=${TOKEN}`);
  await page.fill('#first-email', 'root@uni.example');
  await page.fill('#first-password', 'correct horse battery');
  await page.click('#setup button');
  await page.waitForSelector('#admin-table td:has-text("root@uni.example")');
  t.equal(new URL(page.url()).hash, '', 'the token is taken out of the address');

  await page.fill('#appoint-search', '1');
  await page.fill('#appoint-email', 'ada@uni.example');
  await page.click('#appoint button');
  await page.waitForSelector('#admin-table td:has-text("mail pending: ")');
  const smtp = await startMailServer(port);
  t.teardown(() => smtp.close());
  await page.waitForSelector('#admin-table td:has-text("mail sent")');
  const password = /[a-z2-9]{5}(?:-[a-z2-9]{5}){3}/.exec((await smtp.nth(0)).text)?.[0] ?? '';

  await page.click('#logout');
  await page.fill('#email', 'ada@uni.example');
  await page.fill('#password', password);
  await page.click('#login button');
  await page.fill('#new-password', 'a password of my own');
  await page.click('#change button');
  await page.waitForSelector('#who:has-text("ada@uni.example")');
  page.once('dialog', dialog => void dialog.accept());
  await page.click('#admin-table tr:has-text("root@uni.example") button');
  await page.locator('#admin-table tbody tr').nth(1).waitFor({ state: 'detached' });
  page.once('dialog', dialog => void dialog.accept());
  await page.click('#admin-table tr:has-text("ada@uni.example") button');
  await page.waitForSelector('#message:has-text("last administrator")');
  t.same(errors, []);
});

t.test('in a browser: an administrator confirms the URLs that an installation makes public', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const browser = await startBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage();
  await page.goto(`${s.base}/admin/#token=${TOKEN}`);
  await page.waitForSelector('#upload');
  const buffer = Buffer.from(await buildExample('hello'));
  await page.setInputFiles('input[type=file]', { name: 'hello.wasm', mimeType: 'application/wasm', buffer });
  await page.click('#upload button');
  await page.waitForSelector('#review pre:has-text("It shows nothing but what the caller sent")');
  await page.check('#accept-access');
  const asked: string[] = [];
  page.once('dialog', dialog => {
    asked.push(dialog.message());
    void dialog.dismiss();
  });
  await page.click('#install');
  await page.waitForSelector('#message:has-text("accept_public")');
  t.match(asked[0], `GET, POST ${s.base}/api/triggers/http/hello/greet\n`);
  t.equal((await s.trigger('hello/greet')).status, 404, 'dismissed: nothing is installed');
  page.once('dialog', dialog => void dialog.accept());
  await page.click('#install');
  await page.waitForSelector('#message:has-text("new triggers: greet (public), greet_name (public)")');
  t.equal((await s.trigger('hello/greet')).status, 200);
});
