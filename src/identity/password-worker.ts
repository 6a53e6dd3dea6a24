import fs from 'node:fs';
import os from 'node:os';
import { parentPort } from 'node:worker_threads';
import bcrypt from 'bcrypt';
import type { Numbered } from '../base/single-thread.ts';
import type { PasswordAnswer, PasswordTask } from './password.ts';

/** The thread of `password.ts`: one computation at a time, with low priority. */
const COST = 12;
/** Priority that gives about a tenth of a busy processor: logins then take seconds, but succeed. */
const NICE = 10;

try {
  os.setPriority(Number(fs.readlinkSync('/proc/thread-self').split('/').pop()), NICE);
} catch {
  // Not every system supports a lower priority; it works without.
}

function compute({ against, password }: PasswordTask): PasswordAnswer {
  try {
    if (against === null) return { hash: bcrypt.hashSync(password, COST) };
    return { right: bcrypt.compareSync(password, against) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

parentPort?.on('message', ({ content, id }: Numbered<PasswordTask>) =>
  parentPort?.postMessage({ id, content: compute(content) } satisfies Numbered<PasswordAnswer>),
);
