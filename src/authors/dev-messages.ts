import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../base/errors.ts';
import type { Database } from '../db/database.ts';
import { findAccountUser, linkAccount, makeLinkCode } from '../identity/messenger-accounts.ts';
import { DevMessenger, type SentFile, type ShownMessage } from './dev-messenger.ts';

/** `plugin message`: a message to the plugin under `plugin dev`, and what comes back. */

/** Accounts that no user has linked have numbers from here on. */
const GUESTS_FROM = 1_000_000;
const LOOK_MS = 20;
/** A command, and the messages it queues. */
const ANSWER_MS = 15_000;
const FILE_BYTES_MAX = 20 * 1024 * 1024;

/** A message that came back, or went to another account meanwhile. */
export type ReceivedMessage = { to: string; text: string; file: SentFile | null };
export type MessageAnswer = {
  /** What became of the command: `ok`, or why it did not run. */
  outcome: string;
  messages: ReceivedMessage[];
};

const principalOf = (chatId: string): string => {
  const account = Number(chatId);
  return account >= GUESTS_FROM ? `guest:${account - GUESTS_FROM}` : `user:${account}`;
};

export class DevMessages {
  readonly messenger: DevMessenger;
  #arrived: ReceivedMessage[] = [];
  /** One message at a time: what arrives meanwhile belongs to it. */
  #turn: Promise<unknown> = Promise.resolve();

  /** @param shown called for each message that arrives, for the terminal */
  constructor(shown: (message: ReceivedMessage) => void) {
    this.messenger = new DevMessenger(({ chatId, file, text }: ShownMessage) => {
      const message = { to: principalOf(chatId), text, file };
      this.#arrived.push(message);
      shown(message);
    });
  }

  /** Links an account to a user, as the user would with a code. */
  async link(db: Database, userId: number): Promise<void> {
    const account = { channel: 'TELEGRAM', accountId: String(userId), chatId: String(userId) } as const;
    if ((await findAccountUser(db, account.channel, account.accountId))?.userId === userId) return;
    const { code } = await makeLinkCode(db, userId);
    await db.withTransaction(client => linkAccount(client, account, code));
  }

  /**
   * Sends a message to the plugin and waits for what comes of it.
   *
   * @param as `user:7`, or `guest` for an account that no user has linked
   * @param prepare makes sure there is such a user
   * @throws OperatorError that names what is wrong with it, or when it is not handled in time
   */
  async send(
    { db, port }: { db: Database; port: number },
    message: { as: string; text: string; file: SentFile | null },
    prepare: (userId: number) => Promise<void>,
  ): Promise<MessageAnswer> {
    const [, kind, number] = /^(user|guest)(?::(\d+))?$/.exec(message.as) ?? [];
    if (kind === undefined || (kind === 'user' && number === undefined))
      throw new OperatorError(`"${message.as}" is no sender: write user:7, or guest for an account without a user`);
    if (message.file !== null && message.file.bytes.length > FILE_BYTES_MAX)
      throw new OperatorError(
        `${message.file.name} has ${message.file.bytes.length} bytes; a messenger gives at most 20 MB`,
      );
    if (kind === 'user') await prepare(Number(number));
    const account = kind === 'user' ? Number(number) : GUESTS_FROM + Number(number ?? 0);
    const sent = this.#turn.then(async () => {
      this.#arrived = [];
      const { rows } = await db.query<{ id: string }>('SELECT coalesce(max(id), 0) AS id FROM outgoing_messages');
      const update = await this.messenger.send(port, account, message.text, message.file);
      const outcome = await this.#handled(db, update, Number(rows[0]?.id));
      return { outcome, messages: this.#arrived };
    });
    this.#turn = sent.catch(() => {});
    return await sent;
  }

  /** Waits until the update is handled and what it queued has arrived. */
  async #handled(db: Database, update: string, before: number): Promise<string> {
    const end = performance.now() + ANSWER_MS;
    while (performance.now() < end) {
      const { rows } = await db.query<{ outcome: string; waiting: boolean }>(
        `SELECT outcome, EXISTS (SELECT 1 FROM outgoing_messages WHERE id > $2 AND state IN ('queued', 'sending')) AS waiting
         FROM messenger_updates WHERE channel = 'TELEGRAM' AND update_id = $1 AND handled_at IS NOT NULL`,
        [update, before],
      );
      const [row] = rows;
      if (row !== undefined && !row.waiting) return row.outcome;
      await sleep(LOOK_MS);
    }
    throw new OperatorError(
      `the message was not handled within ${ANSWER_MS / 1000} s; the terminal of plugin dev may say why`,
    );
  }
}
