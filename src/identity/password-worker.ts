import fs from 'node:fs';
import os from 'node:os';
import bcrypt from 'bcrypt';
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

export default function computePasswordInWorker({ against, password }: PasswordTask): PasswordAnswer {
  if (against === null) return { hash: bcrypt.hashSync(password, COST) };
  return { right: bcrypt.compareSync(password, against) };
}
