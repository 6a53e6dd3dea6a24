import { replier, startTelegram, TELEGRAM_SECRET, telegramUpdate } from '../test/support/messengers.ts';
import { startSubscriber } from '../test/support/subscriber.ts';
import { assemble, hostImports, manifestOf, withManifest } from '../test/support/wat.ts';
import { admin, install, startHost } from './host.ts';
import { add } from './report.ts';

const CLIENTS = 16;
/** Commands that are run and answered, each in a chat of its own. */
const COMMANDS = 1500;
const EVENTS_PER_EXECUTION = 100;
const EXECUTIONS = 20;

/** Publishes events of a few bytes. */
const publisher = (): Uint8Array =>
  withManifest(
    assemble(`(module ${hostImports('respond', 'event_publish')} (memory (export "memory") 1)
      (data (i32.const 64) "bench.done") (data (i32.const 128) "{\\"n\\":1}")
      (func (export "plugin_handle") (result i32) (local $k i32)
        (loop $l
          (if (call $event_publish (i32.const 64) (i32.const 10) (i32.const 128) (i32.const 7)) (then unreachable))
          (br_if $l (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const ${EVENTS_PER_EXECUTION}))))
        (drop (call $respond (i32.const 200) (i32.const 0) (i32.const 0) (i32.const 64) (i32.const 1))) (i32.const 0)))`),
    manifestOf({ id: 'publisher', requirements: [{ kind: 'events' }] }),
  );

/** Sends updates as the messenger does, several at a time. @returns how many were not taken */
async function sendUpdates(port: number, from: number, count: number, text: string): Promise<number> {
  let next = from;
  let refused = 0;
  const client = async (): Promise<void> => {
    for (let id = next++; id < from + count; id = next++) {
      const chat = 1_000_000 + id;
      const answer = await fetch(`http://127.0.0.1:${port}/api/messengers/telegram`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-telegram-bot-api-secret-token': TELEGRAM_SECRET },
        body: JSON.stringify(telegramUpdate(id, text, { from: chat, chat, language: 'en', file: undefined })),
      });
      await answer.arrayBuffer();
      if (answer.status !== 200) refused++;
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return refused;
}

/** Updates of a messenger that are taken, commands that are answered, events that reach a subscriber. */
export async function messages(directory: string, seconds: number): Promise<void> {
  const ends: Array<() => unknown> = [];
  const teardown = { teardown: (end: () => unknown): number => ends.push(end) };
  const telegram = await startTelegram(teardown);
  const subscriber = await startSubscriber(teardown);
  telegram.perSecond = Number.POSITIVE_INFINITY;
  const host = await startHost(directory, {
    ...telegram.env(),
    BOT_MESSENGERS_TELEGRAM_PER_SECOND: '1000',
    BOT_EVENTS_PRIVATE_RANGES: '127.0.0.1',
  });
  try {
    await install(host.port, replier('replier', 'hi'));
    await sendUpdates(host.port, 1, 50, '/hi');
    await telegram.until(50);
    let at = performance.now();
    let refused = await sendUpdates(host.port, 1000, COMMANDS, '/hi');
    const taken = COMMANDS / ((performance.now() - at) / 1000);
    await telegram.until(50 + COMMANDS, 20_000 * seconds);
    const answered = COMMANDS / ((performance.now() - at) / 1000);
    add('updates of a messenger taken (webhook)', `${taken.toFixed(0)}/s`, `${CLIENTS} clients; refused ${refused}`);
    add('commands run and answered (at most 1000/s are sent)', `${answered.toFixed(0)}/s`);

    const made = await admin(host.port, 'POST', '/events/subscriptions', { name: 'bench', url: subscriber.url });
    subscriber.secret = ((await made.json()) as { secret: string }).secret;
    await install(host.port, publisher());
    const publish = async (): Promise<void> => {
      const r = await fetch(`http://127.0.0.1:${host.port}/api/triggers/http/publisher/run`);
      await r.arrayBuffer();
      if (r.status !== 200) refused++;
    };
    await publish();
    await subscriber.until(EVENTS_PER_EXECUTION, 60_000);
    at = performance.now();
    refused = 0;
    for (let k = 0; k < EXECUTIONS; k++) await publish();
    const published = (EXECUTIONS * EVENTS_PER_EXECUTION) / ((performance.now() - at) / 1000);
    await subscriber.until((EXECUTIONS + 1) * EVENTS_PER_EXECUTION, 20_000 * seconds);
    const delivered = (EXECUTIONS * EVENTS_PER_EXECUTION) / ((performance.now() - at) / 1000);
    add('events published by one plugin, one after another', `${published.toFixed(0)}/s`, `failed ${refused}`);
    add(
      'events delivered to a webhook',
      `${delivered.toFixed(0)}/s`,
      `signatures refused ${subscriber.unsigned.length}`,
    );
  } finally {
    await host.stop();
    for (const end of ends) await end();
  }
}
