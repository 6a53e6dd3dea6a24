import type { Database, Queryable } from '../db/database.ts';
import { type Chat, handleNext, type StoredUpdate } from './updates.ts';

export type UpdateRunnerParts = {
  db: Database;
  /** Chats at a time: each holds a connection while a plugin runs. */
  atOnce: number;
  /** Does the work inside the transaction; says in a word what became of it. */
  handle(client: Queryable, update: StoredUpdate): Promise<string>;
  /** An update of the chat is done. */
  handled(chat: Chat): void;
  onError(error: unknown, what: string): void;
};

/** Handles what has come, chat by chat: those of one chat in order, chats in turns, so that one that writes much holds up no other. */
export class UpdateRunner {
  readonly #parts: UpdateRunnerParts;
  /** Chats with something to do, in order; those under way stand in `#running` alone. */
  readonly #waiting = new Map<string, Chat>();
  readonly #running = new Map<string, Promise<void>>();
  #isClosed = false;

  constructor(parts: UpdateRunnerParts) {
    this.#parts = parts;
  }

  /** There may be something new in a chat. */
  kick(chat: Chat): void {
    this.#waiting.set(`${chat.channel} ${chat.chatId}`, chat);
    this.#next();
  }

  #next(): void {
    if (this.#isClosed) return;
    for (const [key, chat] of this.#waiting) {
      if (this.#running.size >= this.#parts.atOnce) return;
      if (this.#running.has(key)) continue;
      this.#waiting.delete(key);
      const work = this.#run(chat)
        .catch((error: unknown) => this.#parts.onError(error, 'handling a message'))
        .finally(() => {
          this.#running.delete(key);
          this.#next();
        });
      this.#running.set(key, work);
    }
  }

  async #run(chat: Chat): Promise<void> {
    const { db, handle, handled } = this.#parts;
    if (!(await handleNext(db, chat, handle))) return;
    handled(chat);
    // Behind the others.
    this.kick(chat);
  }

  /** Updates under way end; the rest stays for the next start. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#running.values());
  }
}
