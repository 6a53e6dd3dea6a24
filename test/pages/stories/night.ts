import fs from 'node:fs';
import type { Page } from 'playwright-core';
import t from 'tap';
import { ru } from '../../../admin/src/texts/ru.ts';
import { openDatabase } from '../../../src/db/database.ts';
import { startAdminBrowser } from '../../support/admin-browser.ts';
import { startGraphStore, tuple } from '../../support/graph.ts';
import { startTelegram } from '../../support/messengers.ts';
import { addDeadEntry } from '../../support/outbox.ts';
import type { TestService } from '../../support/service.ts';
import { startSubscriber } from '../../support/subscriber.ts';
import { makeUniversity } from '../../support/university.ts';
import { SOURCE_TOKEN, startUniversitySource } from '../../support/university-source.ts';

/** The operator at night, on a phone: the overview says what waits, and one link leads to what mends it. */

const DEAN = 'faculty:f#dean@user:s-1';

/** An entry of the outbox and an event that are given up, and a message that has failed. */
async function giveUp(s: TestService): Promise<void> {
  await addDeadEntry(s.databaseUrl, DEAN);
  const db = openDatabase(s.databaseUrl, 1, () => {});
  await db.query(
    `WITH e AS (INSERT INTO events (plugin_id, type, data, request_id) VALUES ('hello', 'grade.given', '{"n":1}', 'r') RETURNING id)
     INSERT INTO event_deliveries (subscription_id, event_id, plugin_id, state, attempts, last_status, ended_at)
     SELECT s.id, e.id, 'hello', 'dead', 65, 503, now() FROM e, event_subscriptions s`,
  );
  await db.query(
    `INSERT INTO outgoing_messages (channel, chat_id, source, message, request_id, urgent, state, ended_at, last_error)
     VALUES ('TELEGRAM', '7', 'host', '{"text":"Пора сдать книгу","files":[]}', 'r1', true, 'failed', now(), 'blocked')`,
  );
  await db.close();
}

/** What a click downloads, as text. */
async function downloaded(page: Page, button: string): Promise<{ name: string; content: Buffer }> {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: button }).click(),
  ]);
  return { name: download.suggestedFilename(), content: fs.readFileSync(await download.path()) };
}

t.test('what waits is mended from the overview: import, brake, outbox, drift, event, message', async t => {
  const source = await startUniversitySource(makeUniversity({ seed: 1, groups: 2, students: 12, teachers: 4 }));
  t.teardown(() => source.close());
  const { persons } = source.university;
  const ended = persons.slice(4);
  const { spicedb, store } = await startGraphStore(t);
  const subscriber = await startSubscriber(t);
  const telegram = await startTelegram(t);
  const env = {
    ...telegram.env(),
    BOT_SPICEDB_ENDPOINT: spicedb.endpoint,
    BOT_SPICEDB_TOKEN: 'any',
    BOT_SPICEDB_TLS: 'false',
    BOT_EVENTS_PRIVATE_RANGES: '127.0.0.1',
    BOT_UNIVERSITY_SYNC_BASE_URL: source.url,
    BOT_UNIVERSITY_SYNC_TOKEN: SOURCE_TOKEN,
  };
  const { axe, errors, open, page } = await startAdminBrowser(t, {
    ...{ env, language: 'ru-RU', width: 320 },
    async prepare(s) {
      await s.admin('POST', '/university/pull?wait=1', { release_brake: [] });
      source.university.persons = persons.slice(0, 4);
      const stopped = await s.admin('POST', '/university/pull?wait=1', { release_brake: [] });
      if (!stopped.text.includes('"stopped"')) throw new Error(stopped.text);
      const made = await s.admin('POST', '/events/subscriptions', { name: 'архив', url: subscriber.url });
      subscriber.secret = String(made.json.secret);
      await giveUp(s);
      // What the comparison of the night finds.
      await store.write([{ operation: 'touch', tuple: tuple('faculty:f-9#dean@user:stranger') }]);
      await s.admin('GET', '/authz/drift');
    },
  });
  /** Goes where the overview leads for something that waits. */
  const follow = async (kind: keyof typeof ru.attention.go, words: string): Promise<void> => {
    await open('/admin/');
    await page.getByText(words).waitFor();
    await page.getByRole('link', { name: ru.attention.go[kind], exact: true }).first().click();
  };

  await open('/admin/university?type=person');
  const csv =
    'external_id;last_name;first_name;locale\nn-1;Иванова;Анна;ru\nn-2;Петров;;ru\nn-3;Орлов;Лев;fr\n;Безид;А;ru\n';
  const file = { name: 'persons.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) };
  await page.setInputFiles('input[type=file]', file);
  const emptied = page.getByRole('alert').filter({ hasText: ru.university.columnsEmptied_many });
  t.match(await emptied.locator('code').allTextContents(), ['middle_name', 'name_i18n', 'email']);
  await page.getByRole('button', { name: ru.university.check }).click();
  await page.getByRole('button', { name: /^Импортировать \d/ }).click();
  await page.getByRole('link', { name: ru.university.openImport }).waitFor();
  const failed = await downloaded(page, ru.university.saveFailed);
  t.equal(failed.name, 'persons-failed.csv');
  t.match(failed.content.toString(), /n-3;Орлов/);
  t.notMatch(failed.content.toString(), /n-1;Иванова/);
  await follow('import_failed', 'последнего импорта');
  await page.getByText('Должно быть одно из: ru, en.').first().waitFor();
  t.same(await axe(), [], 'the import');

  await follow('import_stopped', 'Предохранитель остановил 1 список');
  await page
    .getByText(/неактивными \d+ из \d+ активных/)
    .first()
    .waitFor();
  const [first] = ended.toSorted((a, b) => (String(a.external_id) < String(b.external_id) ? -1 : 1));
  await page.getByText(`${first?.last_name} ${first?.first_name}`).first().waitFor();
  await page.getByRole('button', { name: /^и ещё \d+/ }).click();
  const rows = page.getByRole('dialog').getByRole('row');
  while ((await rows.count()) !== ended.length + 1) await rows.last().waitFor();
  t.same(await axe(), [], 'the brake');
  await page.keyboard.press('Escape');
  await open('/admin/university?tab=history');
  const history = await downloaded(page, ru.university.saveHistory);
  t.match(history.name, /^imports-.*\.csv$/);
  t.match(history.content.toString(), /\r\n\d+,pull,partial,.*,person,stopped,/);
  await open('/admin/audit');
  t.match((await downloaded(page, ru.audit.download)).content.toString(), /university\.pull/);
  await open('/admin/university?tab=pulls');
  const question = page.getByRole('dialog');
  const release = async (): Promise<void> => {
    await page.getByRole('button', { name: ru.university.pull.releaseGo }).click();
    await question.getByRole('textbox').fill('person');
    await question.getByRole('button', { name: ru.university.pull.release }).click();
  };
  await release();
  // The person of the dropped file is not in the list of the source either: one more than was confirmed.
  await page
    .getByText(`неактивными ${ended.length + 1} из`)
    .first()
    .waitFor();
  await release();
  await page.getByText('Сработал предохранитель').waitFor({ state: 'detached' });

  await follow('outbox_dead', 'изменение прав');
  await page.getByText('the store refused it').waitFor();
  await page.getByRole('button', { name: /Добавляет связи/ }).click();
  await page.getByRole('dialog').getByText(DEAN).waitFor();
  t.same(await axe(), [], 'the outbox');
  await page.getByRole('dialog').getByRole('button', { name: ru.outbox.retry, exact: true }).click();
  await page.getByRole('dialog').getByText(ru.outbox.state.requeued).waitFor();

  await follow('graph_differs', 'между графом');
  await page.getByRole('button', { name: ru.outbox.compare, exact: true }).click();
  await page.getByText('faculty:f-9#dean@user:stranger').waitFor();
  t.same(await axe(), [], 'the comparison');
  await page.getByRole('button', { name: ru.outbox.repair }).click();
  await page.getByRole('dialog').getByRole('button', { name: ru.outbox.repair }).click();
  await page.getByText(ru.outbox.repaired).first().waitFor();

  await follow('events_undelivered', 'событие');
  await page.getByRole('link', { name: 'архив' }).click();
  await page.getByText('grade.given').first().waitFor();
  await page.getByRole('button', { name: ru.events.replay, exact: true }).first().click();
  t.match((await subscriber.until(1))[0], { type: 'grade.given', data: { n: 1 } });

  await follow('messages_failed', 'сообщение');
  await page.getByText('Пора сдать книгу').click();
  await page.getByText('blocked').waitFor();
  t.same(await axe(), [], 'the message');
  await page.getByRole('dialog').getByRole('button', { name: ru.messages.retry }).click();
  t.match((await telegram.until(1))[0], { chat: '7', text: 'Пора сдать книгу' });

  await open('/admin/system');
  await page.getByRole('button', { name: ru.doctor.look }).click();
  await page.getByText('every seal fits its entries').waitFor();
  for (const name of Object.values(ru.doctor.name)) {
    if (
      ['Сертификат', 'Сохранённые учётные', 'Загрузка из', 'Провайдер', 'Почтовый', 'VK'].some(w => name.startsWith(w))
    )
      continue;
    t.ok(await page.getByRole('status').getByText(name, { exact: true }).first().isVisible(), name);
  }
  t.same(await axe(), [], 'everything, one by one');
  await page.getByRole('button', { name: ru.system.bundleGo }).click({ trial: true });
  const bundle = await downloaded(page, ru.system.bundleGo);
  t.match(bundle.name, /^plugin-host-support.*\.tar\.gz$/);
  t.same([...bundle.content.subarray(0, 2)], [0x1f, 0x8b]);
  await open('/admin/');
  // The import of the list with wrong rows stays what it was.
  await page.getByText('последнего импорта').waitFor();
  t.equal(
    await page.getByRole('link', { name: /^(Повторить|Сравнить|Показать остановленное|Отправить|Решить)/ }).count(),
    0,
    'nothing else waits',
  );
  t.same(errors, []);
});
