import { messageOf, ServiceError } from '../../base/errors.ts';
import { parseJsonBody } from './json-body.ts';
import type { JsonAnswer, JsonTask } from './json-thread.ts';

/** One task of `json-thread.ts`, in its thread. */
export default function parseJsonInWorker(bytes: JsonTask): JsonAnswer {
  try {
    return { value: parseJsonBody(bytes) };
  } catch (error) {
    return { problem: messageOf(error), isRefusal: error instanceof ServiceError };
  }
}
