import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { packFrontend } from '../../sdk/pack-frontend.ts';
import { openDatabase } from '../../src/db/database.ts';
import { addSession } from '../../src/identity/sessions.ts';
import { addUser } from '../../src/identity/users.ts';
import { startBrowser } from '../support/browser.ts';
import { filebox, sha256 } from '../support/files.ts';
import { BUCKET, startS3Server } from '../support/s3-server.ts';
import { request, startTestService, TOKEN } from '../support/service.ts';

const FRONTEND = path.resolve(import.meta.dirname, '../../sdk/gallery/filebox/frontend');
/** One red point. */
const PICTURE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==',
  'base64',
);

/** A service with the plugin filebox and its frontend, and a user who is logged in. */
async function world(t: { teardown(fn: () => unknown): void }, env: Record<string, string>) {
  const s = await startTestService(env);
  t.teardown(() => s.stop());
  const form = new FormData();
  form.append('frontend', new Blob([new Uint8Array(await packFrontend(FRONTEND))]), 'f.zip');
  form.append('file', new Blob([new Uint8Array(await filebox())]), 'filebox.wasm');
  const uploaded = await request(`${s.base}/api/admin/plugins/upload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}` },
    body: form,
  });
  t.teardown(() => {});
  if (uploaded.status !== 201) throw new Error(uploaded.text);
  await s.admin('POST', '/plugins/filebox/install', { wasm_key: String(uploaded.json.wasm_key) });
  for (const name of ['files', 'file', 'link'])
    await s.admin('PUT', `/plugins/filebox/triggers/${name}/settings`, { allow_user_session: true });
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  const user = await addUser(db, { displayName: 'Ada' });
  const { secret } = await addSession(db, {
    kind: 'user',
    userId: user.id,
    withPassword: false,
    address: '',
    userAgent: '',
    browser: false,
  });
  return { s, secret, upload: uploaded.json };
}

for (const where of ['disk', 's3'] as const)
  t.test(`in a browser, files go from the filebox page to ${where} and are shown there`, async t => {
    const directory = t.testdir();
    const s3 = where === 's3' ? await startS3Server(path.join(directory, 's3')) : null;
    t.teardown(() => s3?.stop());
    const { s, secret, upload } = await world(t, s3?.env ?? {});
    t.match(upload.frontend, { files: 3 });
    const browser = await startBrowser();
    t.teardown(() => browser.close());
    const context = await browser.newContext();
    await context.addCookies([{ name: 'user_session', value: secret, url: s.base, httpOnly: true, sameSite: 'Lax' }]);
    const page = await context.newPage();
    const problems: string[] = [];
    page.on('console', m => {
      if (m.type() === 'error') problems.push(m.text());
    });
    page.on('pageerror', e => problems.push(String(e)));
    await page.goto(`${s.base}/plugins/filebox/app/`);
    t.equal(await page.title(), 'Filebox');

    const picture = path.join(directory, 'Точка.png');
    const text = path.join(directory, 'notes.txt');
    fs.writeFileSync(picture, PICTURE);
    fs.writeFileSync(text, 'some notes');
    await page.getByLabel('Add files').setInputFiles([picture, text]);
    await page.getByRole('button', { name: 'Upload' }).click();
    await page.getByText('2 files were added').waitFor();
    const items = page.getByRole('listitem');
    await items.nth(1).waitFor();
    t.equal(await items.count(), 2);
    const names = (await items.locator('a').allTextContents()).sort();
    t.same(names, ['notes.txt (10 bytes)', `Точка.png (${PICTURE.length} bytes)`]);
    const drawn = await page
      .locator('li img')
      .evaluate((image: { decode(): Promise<void>; naturalWidth: number }) =>
        image.decode().then(() => image.naturalWidth),
      );
    t.equal(drawn, 1, 'the picture is shown');
    const href = await page.getByRole('link', { name: 'notes.txt' }).getAttribute('href');
    t.ok(href?.startsWith(s3 === null ? `${s.base}/api/files/` : `${s3.origin}/${BUCKET}/`), href ?? 'no link');
    const got = await fetch(href ?? '');
    t.equal(sha256(new Uint8Array(await got.arrayBuffer())), sha256(Buffer.from('some notes')));

    await page.getByRole('button', { name: 'Delete notes.txt' }).click();
    await page.getByText('notes.txt is deleted').waitFor();
    await page.getByRole('link', { name: 'notes.txt' }).waitFor({ state: 'detached' });
    t.equal((await fetch(href ?? '')).status, 404);
    await page.reload();
    await page.getByText('Точка.png').waitFor();
    t.equal(await items.count(), 1);
    t.same(problems, [], 'the browser complains of nothing');
  });
