import fs from 'node:fs';
import os from 'node:os';
import { parentPort } from 'node:worker_threads';
import bcrypt from 'bcrypt';
import type { PasswordAnswer, PasswordOrder } from './password.ts';

/** The thread of `password.ts`: one computation at a time, behind most of what the processor has to do. */
const COST = 12;
/** A tenth of a processor beside others that want all of it: a login then takes seconds, but gets through. */
const NICE = 10;

try {
  os.setPriority(Number(fs.readlinkSync('/proc/thread-self').split('/').pop()), NICE);
} catch {
  // Only a courtesy to the others; not every system knows it.
}

function compute(order: PasswordOrder): PasswordAnswer {
  try {
    if (order.against === null) return { id: order.id, hash: bcrypt.hashSync(order.password, COST) };
    return { id: order.id, right: bcrypt.compareSync(order.password, order.against) };
  } catch (error) {
    return { id: order.id, error: error instanceof Error ? error.message : String(error) };
  }
}

parentPort?.on('message', (order: PasswordOrder) => parentPort?.postMessage(compute(order)));
