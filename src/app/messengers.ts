import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { messengerRoutes } from '../api/messages/messengers-api.ts';
import type { Attention } from '../api/operation/attention-api.ts';
import type { CommandAccess } from '../authz/command-access.ts';
import { messageOf } from '../base/errors.ts';
import { assertInTime } from '../base/gatherer.ts';
import { LIMITS } from '../base/limits.ts';
import { gauge } from '../base/metric.ts';
import type { Config } from '../config/load.ts';
import { durationMs } from '../config/values.ts';
import type { Queryable } from '../db/database.ts';
import { tryLock } from '../db/held-lock.ts';
import { LOCKS } from '../db/locks.ts';
import type { Execution } from '../execution/execute.ts';
import type { Files } from '../files/files.ts';
import type { Graph } from '../graph/graph.ts';
import { nameResolver } from '../host/guarded-agent.ts';
import { guardedCalls } from '../host/guarded-calls.ts';
import type { HostCall } from '../host/host-functions.ts';
import { messageHandlers } from '../host/messages.ts';
import { removeOldCodes } from '../identity/messenger-accounts.ts';
import { type JobQueue, kickJob, scheduledJob } from '../jobs.ts';
import type { Channel, ChannelName } from '../messaging/channel.ts';
import {
  appendMessages,
  countMessages,
  type MessageCounts,
  type NewMessage,
  removeOldMessages,
} from '../messaging/outgoing.ts';
import { receiveUpdate, UPDATE_QUEUE } from '../messaging/receive.ts';
import { MessageSender } from '../messaging/sender.ts';
import { telegramChannel } from '../messaging/telegram.ts';
import { UpdateRunner } from '../messaging/update-runner.ts';
import { type Chat, listLeftChats, removeOldUpdates } from '../messaging/updates.ts';
import { vkChannel } from '../messaging/vk.ts';
import { handleMessage } from '../triggers/handle-message.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';
import { outsideAttention } from './health.ts';
import type { Identity } from './identity.ts';
import type { Plugins } from './plugins.ts';
import type { Records } from './records.ts';

export type MessengersParts = Pick<Plugins, 'registry'> &
  Pick<Records, 'quarantine' | 'records'> &
  Pick<Identity, 'guards' | 'principals'> & {
    files: Files;
    graph: Pick<Graph, 'lookupUsers'>;
    access: CommandAccess;
    execute(execution: Execution<HostCall>): void;
  };

const SEND_QUEUE = 'messenger_send';
const SWEEP_SECONDS = 5;
/** An update whose host has ended is taken up by another one then. */
const LEFT_MS = 3000;
const POLL_LOCK_AGAIN_MS = 5000;

const channelName = z.enum(['TELEGRAM', 'VK']);
const updateJob = z.object({ channel: channelName, chatId: z.string() });
const sendJob = z.object({ channel: channelName });

/** The messengers that are set up: a row here, and a file each (docs/messengers.md "Channels"). */
export function messengersOf(config: Config): { channels: Map<ChannelName, Channel>; close(): Promise<void> } {
  const v = config.values;
  const http = guardedCalls({
    privateRanges: v['messengers.private_ranges'],
    rangesKey: 'messengers.private_ranges',
    configured: [v['messengers.telegram_api_url'], v['messengers.vk_api_url']],
    resolve: nameResolver(v['network.name_servers'], true),
    callMs: LIMITS.messengerCallMs,
  });
  const channels: Channel[] = [];
  if (v['messengers.telegram_token'] !== '')
    channels.push(
      telegramChannel({
        apiUrl: v['messengers.telegram_api_url'].replace(/\/$/, ''),
        token: v['messengers.telegram_token'],
        perSecond: v['messengers.telegram_per_second'],
        http,
      }),
    );
  if (v['messengers.vk_token'] !== '')
    channels.push(
      vkChannel({
        apiUrl: v['messengers.vk_api_url'].replace(/\/$/, ''),
        token: v['messengers.vk_token'],
        groupId: v['messengers.vk_group_id'],
        perSecond: v['messengers.vk_per_second'],
        http,
      }),
    );
  return { channels: new Map(channels.map(c => [c.name, c])), close: () => http.close() };
}

/** Messages of the last day that failed, and those that may have arrived: only an administrator can find out. */
function unsent(counts: readonly MessageCounts[]): Attention[] {
  const uncertain = counts.reduce((n, c) => n + c.uncertain, 0);
  const failed = counts.reduce((n, c) => n + c.failed, 0) - uncertain;
  const same = { severity: 'warn', plugin: null, detail: null, since: null } as const;
  return [
    ...(uncertain > 0 ? [{ ...same, kind: 'messages_uncertain' as const, count: uncertain }] : []),
    ...(failed > 0 ? [{ ...same, kind: 'messages_failed' as const, count: failed }] : []),
  ];
}

/** Talks with messengers: what comes in, what goes out, what plugins may say. */
export function composeMessengers({ config, db, jobs, log }: Core, parts: MessengersParts): Feature {
  const { files, guards, principals } = parts;
  const v = config.values;
  const { channels, close: closeChannels } = messengersOf(config);
  const onError = (error: unknown, what: string): void => log.warn({ error: messageOf(error) }, `${what} failed`);
  const sender = new MessageSender({
    db,
    databaseUrl: v['database.url'],
    channels,
    findFile: id => files.find(id),
    async readFile(file) {
      const reader = files.openReader(file);
      try {
        return await reader.read(0, file.size);
      } finally {
        await reader.close();
      }
    },
    onError,
  });

  /** Messages and the job that sends them, in one transaction. */
  const queueIn = async (client: Queryable, messages: readonly NewMessage[]): Promise<number> => {
    const count = await appendMessages(client, messages);
    for (const channel of new Set(messages.map(m => m.channel))) await jobs.enqueue(client, SEND_QUEUE, { channel });
    return count;
  };
  const messageParts = { ...parts, channels, timeoutMs: v['execution.timeout_ms'], onError };
  const runner = new UpdateRunner({
    db,
    atOnce: LIMITS.updatesAtOnce,
    handle: (client, update) => handleMessage(messageParts, client, update),
    // The answers are stored: a host that ends now leaves them to the sweep.
    handled: ({ channel }) => sender.kick(channel),
    onError,
  });
  /** A host that does not know the messenger leaves its updates to one that does. */
  const handleSoon = (chat: Chat): void => {
    if (channels.has(chat.channel)) runner.kick(chat);
  };
  const receive = async (channel: Channel, update: unknown): Promise<void> => {
    if (await receiveUpdate(db, channel, update, (client, queue, data) => jobs.enqueue(client, queue, data)))
      jobs.wake(UPDATE_QUEUE);
  };
  const queues: Array<JobQueue<object>> = [
    kickJob(UPDATE_QUEUE, data => updateJob.parse(data), handleSoon),
    kickJob(
      SEND_QUEUE,
      data => sendJob.parse(data),
      ({ channel }) => sender.kick(channel),
    ),
    {
      ...scheduledJob('messenger_sweep', { everySeconds: SWEEP_SECONDS }, 60, async () => {
        // What a host that ended has left: updates it was at, and messages it would have sent.
        for (const chat of await listLeftChats(db, LEFT_MS)) handleSoon(chat);
        for (const channel of channels.keys()) sender.kick(channel);
      }),
      pollSeconds: SWEEP_SECONDS,
    },
    scheduledJob('messenger_cleaning', '17 * * * *', 600, async () => {
      await removeOldUpdates(db);
      await removeOldMessages(db, durationMs(v['retention.messages']));
      await removeOldCodes(db);
    }),
  ];

  const outside = [...channels.values()].map(channel =>
    outsideAttention(channel.name.toLowerCase(), signal => channel.check(signal)),
  );
  const stopping = new AbortController();
  const polling: Array<Promise<void>> = [];
  const polled = new Set<ChannelName>();
  /** One host asks, the others wait until it has gone. */
  const poll = async (channel: Channel): Promise<void> => {
    while (!stopping.signal.aborted) {
      const lost = new AbortController();
      const lock = await tryLock(v['database.url'], LOCKS.messagePolling[channel.name], () => lost.abort()).catch(
        () => null,
      );
      if (lock !== null) {
        const signal = AbortSignal.any([lost.signal, stopping.signal]);
        const take = (update: unknown): Promise<void> => receive(channel, update);
        const failed = (error: unknown): void => onError(error, `asking ${channel.name} for updates`);
        polled.add(channel.name);
        await channel.poll(take, failed, signal).finally(() => {
          polled.delete(channel.name);
          return lock.close();
        });
      }
      await sleep(POLL_LOCK_AGAIN_MS, undefined, { signal: stopping.signal }).catch(() => {});
    }
  };

  return {
    hostFunctions: messageHandlers({
      db,
      files,
      graph: parts.graph,
      channels: [...channels.keys()],
      async queue(messages, deadline) {
        const count = await db.withTransaction(async client => {
          const queued = await queueIn(client, messages);
          assertInTime(deadline);
          return queued;
        });
        jobs.wake(SEND_QUEUE);
        return count;
      },
    }),
    // A host without messengers has no work for them; what waits is kept for one that has.
    jobs: channels.size === 0 ? [] : queues,
    routes: messengerRoutes({
      db,
      principals,
      checkUser: request => guards.check({ guard: 'user' }, request),
      channels,
      telegramSecret: v['messengers.telegram_secret'],
      vkSecret: v['messengers.vk_secret'],
      vkConfirmation: v['messengers.vk_confirmation'],
      vkGroupId: v['messengers.vk_group_id'],
      receive,
      async wakeSender(channel) {
        // There is no queue then; a host that has messengers finds what waits.
        if (channels.size === 0) return;
        await jobs.enqueue(db, SEND_QUEUE, { channel });
        jobs.wake(SEND_QUEUE);
      },
    }),
    async attention() {
      const [counts, away] = await Promise.all([countMessages(db), Promise.all(outside.map(look => look()))]);
      return [...away.flat(), ...unsent(counts)];
    },
    async metrics() {
      const counts = await countMessages(db);
      return [
        gauge(
          'plugin_host_messages',
          'Messages to messengers that wait, and those that failed within a day.',
          counts.flatMap(({ channel, failed, waiting }) => [
            [{ channel, state: 'waiting' }, waiting] as const,
            [{ channel, state: 'failed' }, failed] as const,
          ]),
          'max',
        ),
        gauge(
          'plugin_host_message_oldest_seconds',
          'How long the oldest message has waited.',
          counts.map(({ channel, oldestSeconds }) => [{ channel }, oldestSeconds] as const),
          'max',
        ),
      ];
    },
    duties: () => [
      ...sender.channelsAtWork.map(name => `message_sending:${name}`),
      ...[...polled].map(name => `message_polling:${name}`),
    ],
    start() {
      for (const channel of channels.values())
        if (v[channel.name === 'VK' ? 'messengers.vk_mode' : 'messengers.telegram_mode'] === 'polling')
          polling.push(poll(channel));
    },
    async close() {
      stopping.abort();
      await runner.close();
      await sender.close();
      await Promise.all(polling);
      await closeChannels();
    },
  };
}
