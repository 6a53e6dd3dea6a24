import fs from 'node:fs';
import os from 'node:os';
import { parentPort } from 'node:worker_threads';
import bcrypt from 'bcrypt';
import type { PasswordAnswer, PasswordOrder } from './password.ts';

/** The thread of `password.ts`: one computation at a time, behind everything else the processor has to do. */
const COST = 12;
const NICE_LOWEST = 19;

try {
  os.setPriority(Number(fs.readlinkSync('/proc/thread-self').split('/').pop()), NICE_LOWEST);
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
