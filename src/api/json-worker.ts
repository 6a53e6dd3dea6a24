import { parentPort } from 'node:worker_threads';
import { messageOf, ServiceError } from '../errors.ts';
import { parseJsonBody } from './json-body.ts';
import type { JsonAnswer, JsonOrder } from './json-thread.ts';

/** The thread of `json-thread.ts`. */
function parse({ bytes, id }: JsonOrder): JsonAnswer {
  try {
    return { id, value: parseJsonBody(bytes) };
  } catch (error) {
    return { id, problem: messageOf(error), isRefusal: error instanceof ServiceError };
  }
}

parentPort?.on('message', (order: JsonOrder) => parentPort?.postMessage(parse(order)));
