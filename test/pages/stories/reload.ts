import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { ru } from '../../../admin/src/texts/ru.ts';
import { startBrowserAt } from '../../support/admin-browser.ts';
import { takePort } from '../../support/ports.ts';
import { TOKEN } from '../../support/service.ts';
import { ROOT, start } from '../../support/started-service.ts';

/** A configuration file that was changed is announced, until a reload on the machine applies it. */

t.test('a change of the configuration is announced, and a reload takes the notice back', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'reload-'));
  const port = await takePort();
  const file = path.join(directory, 'host.yaml');
  const configure = (more: string): void =>
    fs.writeFileSync(file, `http:\n  port: ${port}\n${more}admin:\n  setup_token: ${TOKEN}\n`);
  configure('');
  const env = { BOT_CONFIG: file };
  const data = path.join(directory, 'data');
  const service = start(data, env);
  t.teardown(async () => {
    service.child.kill('SIGTERM');
    await service.exited;
  });
  await service.until(/is ready/);
  const base = `http://127.0.0.1:${port}`;
  const { axe, errors, page } = await startBrowserAt(t, base, { language: 'ru-RU', width: 320 });
  const well = page.getByText(ru.attention.none);
  await well.waitFor();

  configure('  max_bodi: 2097152\n');
  await page.getByRole('link', { name: ru.attention.go.config_wrong }).click();
  const wrong = page.getByRole('alert').filter({ hasText: ru.system.pending.wrongTitle });
  await wrong.getByText(/unknown key "http\.max_bodi"; did you mean "http\.max_body"/).waitFor();

  configure('  max_body: 2097152\n');
  await page.goBack();
  await page.getByRole('link', { name: ru.attention.go.config_changed }).click();
  const notice = page.getByRole('alert').filter({ hasText: 'plugin-host reload' });
  await notice.getByText(ru.system.pending.title_one.replace('{{count}}', '1')).waitFor();
  t.ok(await notice.getByText('http.max_body', { exact: true }).isVisible());
  t.same(await axe(), []);
  await page.goBack();

  const reload = start(data, env, ['reload']);
  t.equal(await reload.exited, 0, reload.output());
  await page.getByRole('link', { name: ru.attention.go.config_changed }).waitFor({ state: 'detached' });
  await well.waitFor();
  t.same(errors, []);
});
