import t from 'tap';
import { startAdminBrowser } from '../../support/admin-browser.ts';
import type { TestService } from '../../support/service.ts';
import { watPlugin } from '../../support/wat.ts';
import { rawZip } from '../../support/zip.ts';

/** What an upgrade opens is shown in the review, and asked before it is done (docs/access.md "What an installation widens"). */
const module = (version: string, names: string[]): Uint8Array =>
  watPlugin({
    id: 'marks',
    name: 'Marks',
    version,
    triggers: names.map(name => ({ name, type: 'http', path: '/of/students', methods: ['GET'] })),
    handle: '(i32.const 0)',
  });

async function prepare(s: TestService): Promise<void> {
  await s.install(module('1.0.0', ['marks']), {}, 'default');
  const policy = { policy_expression: 'has_role("dean")' };
  const saved = await s.admin('PUT', '/plugins/marks/triggers/marks/settings', policy);
  if (saved.status !== 200) throw new Error(saved.text);
}

for (const [language, words] of [
  [
    'en-GB',
    {
      opens: 'This version opens more than the one before',
      setUp: 'Set it up',
      upgrade: 'Install this version',
      go: 'Accept and go on',
      runs: 'runs',
    },
  ],
  [
    'ru-RU',
    {
      opens: 'Эта версия открывает больше прежней',
      setUp: 'Настроить',
      upgrade: 'Установить эту версию',
      go: 'Принять и продолжить',
      runs: 'работает',
    },
  ],
] as const)
  t.test(`a trigger under another name, in ${language}`, async t => {
    const width = language === 'ru-RU' ? 320 : 1440;
    const colorScheme = language === 'ru-RU' ? 'dark' : 'light';
    const { axe, errors, open, page, s } = await startAdminBrowser(t, { prepare, language, width, colorScheme });
    await open('/admin/plugins/upload');
    await page.setInputFiles('input[type=file]', {
      name: 'marks.wasm',
      mimeType: 'application/wasm',
      buffer: Buffer.from(module('2.0.0', ['grades'])),
    });
    await page.locator('main button[type=submit], main .mantine-Button-root').last().click();
    await page.getByText(words.opens).waitFor();
    t.match(await page.locator('main').textContent(), 'has_role("dean")');
    t.equal(await page.getByText('It no longer answers').count(), 0, 'the address is the same');
    t.same(await axe(), [], 'review');
    if (process.env.PICTURES !== undefined)
      await page.screenshot({ path: `${process.env.PICTURES}/review-${language}.png`, fullPage: true });
    if (language === 'en-GB') {
      await page.getByText('This version brings no web pages.').waitFor();
      const pages = (buffer: Buffer) =>
        page.setInputFiles('main input[type=file]', { name: 'pages.zip', mimeType: 'application/zip', buffer });
      await pages(Buffer.from('no archive'));
      await page.getByText('it is no ZIP file that can be read').first().waitFor();
      await pages(rawZip([{ name: 'index.html', data: Buffer.from('<h1>Marks</h1>') }]));
      await page.getByText('Files: 1, 14 B').waitFor();
      await page.getByRole('button', { name: 'Replace them (.zip)' }).waitFor();
    }
    await page.getByRole('button', { name: words.setUp, exact: true }).click();
    await page.getByRole('button', { name: words.upgrade, exact: true }).click();
    const question = page.getByRole('dialog');
    await question.getByText('grades').waitFor();
    t.same(await axe(), [], 'question');
    if (process.env.PICTURES !== undefined)
      await page.screenshot({ path: `${process.env.PICTURES}/question-${language}.png` });
    t.equal((await s.trigger('marks/of/students')).status, 401);
    await question.getByRole('button', { name: words.go }).click();
    await page.getByText(`Marks 2.0.0 ${words.runs}`).waitFor();
    t.same(errors, []);
  });
