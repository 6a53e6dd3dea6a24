import fs from 'node:fs';
import os from 'node:os';
import bcrypt from 'bcrypt';
import type { PasswordAnswer, PasswordTask } from './password.ts';

/** The thread of `password.ts`: one computation at a time, behind most of what the processor has to do. */
const COST = 12;
/** A tenth of a processor beside others that want all of it: a login then takes seconds, but gets through. */
const NICE = 10;

try {
  os.setPriority(Number(fs.readlinkSync('/proc/thread-self').split('/').pop()), NICE);
} catch {
  // Only a courtesy to the others; not every system knows it.
}

export default function compute({ against, password }: PasswordTask): PasswordAnswer {
  if (against === null) return { hash: bcrypt.hashSync(password, COST) };
  return { right: bcrypt.compareSync(password, against) };
}
