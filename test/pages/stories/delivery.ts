import t from 'tap';
import { en } from '../../../admin/src/texts/en.ts';
import { openDatabase } from '../../../src/db/database.ts';
import { startAdminBrowser } from '../../support/admin-browser.ts';
import { addDeadEntry } from '../../support/outbox.ts';
import type { TestService } from '../../support/service.ts';
import { startSubscriber } from '../../support/subscriber.ts';

/** What leaves the service, and what an operator decides about it. */

const { events, messages, outbox } = en;

/** An event that the first subscriber got up to now in vain. */
const addDeadEvent = (s: TestService): Promise<void> =>
  change(
    s,
    `WITH e AS (INSERT INTO events (plugin_id, type, data, request_id) VALUES ('hello', 'grade.given', '{"n":1}', 'r') RETURNING id)
     INSERT INTO event_deliveries (subscription_id, event_id, plugin_id, state, attempts, last_status, ended_at)
     SELECT s.id, e.id, 'hello', 'dead', 65, 503, now() FROM e, event_subscriptions s`,
  );

async function change(s: TestService, sql: string): Promise<void> {
  const db = openDatabase(s.databaseUrl, 1, () => {});
  await db.query(sql);
  await db.close();
}

t.test('a subscriber is added with its secret, tried, switched off and on, and gets what was given up', async t => {
  const subscriber = await startSubscriber(t);
  const { axe, errors, open, page, s } = await startAdminBrowser(t, {
    env: { BOT_EVENTS_PRIVATE_RANGES: '127.0.0.1' },
  });
  const button = (name: string) => page.getByRole('button', { name, exact: true }).first();
  const dialog = page.getByRole('dialog');
  await open('/admin/events?tab=subscriptions');
  await button(events.add).click();
  await dialog.getByLabel(events.name).fill('archive');
  await dialog.getByLabel(events.url).fill('ftp://archive.example');
  await dialog.getByRole('button', { name: events.subscribe }).click();
  await dialog.locator('[aria-invalid=true]').waitFor();
  await dialog.getByLabel(events.url).fill(subscriber.url);
  await dialog.getByRole('button', { name: events.subscribe }).click();
  subscriber.secret = (await dialog.getByText(/^whsec_/).textContent()) ?? '';
  await page.keyboard.press('Escape');
  t.ok(await dialog.getByText(/^whsec_/).isVisible(), 'a secret that is shown once is closed by its button alone');
  t.same(await axe(), [], 'the secret');
  await dialog.getByRole('button', { name: events.openToTest }).click();
  await button(events.testGo).click();
  await page.getByText(/^The subscriber took it: status 200/).waitFor();
  t.match((await subscriber.until(1))[0], { type: 'plugin_host.test' });
  t.same(await axe(), [], 'the subscription');

  await button(events.disable).click();
  await dialog.getByText(events.disabledAbout).waitFor();
  await dialog.getByRole('button', { name: events.disable }).click();
  await page.getByText(events.disabledTitle).waitFor();
  await button(events.enable).click();
  await page.getByText(events.disabledTitle).waitFor({ state: 'detached' });

  await addDeadEvent(s);
  await open('/admin/');
  await page.getByRole('link', { name: en.attention.go.events_undelivered }).click();
  await page.getByRole('link', { name: 'archive' }).click();
  await button(events.replayAll).click();
  t.match((await subscriber.until(2))[1], { type: 'grade.given', data: { n: 1 } });
  await page.getByRole('link', { name: 'grade.given' }).click();
  await dialog.getByText(/"n": 1/).waitFor();
  t.match(page.url(), /event=[\w-]{36}/, 'the address names the event');
  await page.keyboard.press('Escape');
  await page.getByRole('switch').check({ force: true });
  await page.getByText(events.liveEmpty).waitFor();
  await change(
    s,
    `INSERT INTO events (plugin_id, type, data, request_id) VALUES ('hello', 'grade.given', '{"n":2}', 'r')`,
  );
  await page.getByRole('button', { name: /grade\.given/ }).click();
  await dialog.getByText(/"n": 2/).waitFor();
  t.same(errors, []);
});

t.test('what is uncertain leads to a decision, and an entry beyond the list opens by its address', async t => {
  const { axe, errors, open, page, s } = await startAdminBrowser(t, {
    prepare: s => addDeadEntry(s.databaseUrl, 'faculty:f#dean@user:s-1'),
  });
  await change(
    s,
    `INSERT INTO outgoing_messages (channel, chat_id, source, message, request_id, urgent, state, ended_at, last_error)
     SELECT 'TELEGRAM', n::text, 'host', ('{"text":"Book ' || n || '","files":[]}')::jsonb, 'r1', true,
       CASE WHEN n = 1 THEN 'uncertain' ELSE 'sent' END, now(), '' FROM generate_series(1, 60) AS n`,
  );
  const dialog = page.getByRole('dialog');
  await open('/admin/');
  await page.getByText('1 message may have arrived, or not').waitFor();
  await page.getByRole('link', { name: en.attention.go.messages_uncertain }).click();
  await page.getByText('Book 1', { exact: true }).click();
  await dialog.getByText(messages.uncertainAbout).waitFor();
  t.same(await axe(), [], 'a message');
  await dialog.getByRole('button', { name: messages.retry }).click();
  await page.getByText(messages.uncertainText.replace('{{to}}', 'Telegram 1')).waitFor();
  await page.getByRole('button', { name: en.common.cancel }).last().click();
  const opened = new URL(page.url());
  await open(`/admin/messages?message=${opened.searchParams.get('message')}`);
  await dialog.getByText(messages.uncertainAbout).waitFor();
  await page.keyboard.press('Escape');

  await open('/admin/audit?entry=1');
  await dialog.getByRole('heading').first().waitFor();
  await page.keyboard.press('Escape');

  await open('/admin/outbox?state=dead');
  await page.getByRole('button', { name: outbox.discard, exact: true }).click();
  await dialog.getByRole('button', { name: outbox.discard }).click();
  await page.getByText('Entry 1 is discarded').waitFor();
  t.same(errors, []);
});
