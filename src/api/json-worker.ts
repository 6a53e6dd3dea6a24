import { parentPort } from 'node:worker_threads';
import { messageOf, ServiceError } from '../base/errors.ts';
import type { Numbered } from '../base/single-thread.ts';
import { parseJsonBody } from './json-body.ts';
import type { JsonAnswer, JsonTask } from './json-thread.ts';

/** The thread of `json-thread.ts`. */
function parse(bytes: JsonTask): JsonAnswer {
  try {
    return { value: parseJsonBody(bytes) };
  } catch (error) {
    return { problem: messageOf(error), isRefusal: error instanceof ServiceError };
  }
}

parentPort?.on('message', ({ content, id }: Numbered<JsonTask>) =>
  parentPort?.postMessage({ id, content: parse(content) } satisfies Numbered<JsonAnswer>),
);
