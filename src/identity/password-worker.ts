import fs from 'node:fs';
import os from 'node:os';
import bcrypt from 'bcrypt';
import type { PasswordAnswer, PasswordTask } from './password.ts';

/** The thread of `password.ts`: one computation at a time, with low priority. */

/** Priority that gives about a tenth of a busy processor: logins then take seconds, but succeed. */
const NICE = 10;

try {
  os.setPriority(Number(fs.readlinkSync('/proc/thread-self').split('/').pop()), NICE);
} catch {
  // Not every system supports a lower priority; it works without.
}

export default function computePasswordInWorker(task: PasswordTask): PasswordAnswer {
  if ('cost' in task) return { hash: bcrypt.hashSync(task.password, task.cost) };
  return { right: bcrypt.compareSync(task.password, task.against) };
}
