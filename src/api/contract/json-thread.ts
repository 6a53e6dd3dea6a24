import { ServiceError } from '../../base/errors.ts';
import { REQUEST_LIMITS } from '../../base/request-limits.ts';
import { WorkerTask } from '../../base/worker-task.ts';
import { parseJsonBody } from './json-body.ts';

export type JsonTask = Uint8Array;
export type JsonAnswer = { value: unknown } | { problem: string; isRefusal: boolean };

const thread = new WorkerTask<JsonTask, JsonAnswer>({
  file: new URL('./json-worker.ts', import.meta.url),
  does: 'parses large bodies (jsonBodiesWaitingMax)',
  threads: 1,
  waiting: { max: REQUEST_LIMITS.jsonBodiesWaitingMax, retryAfterSeconds: 2 },
  heapMb: 128,
});

/**
 * The value of a body; one beyond `jsonInlineBytesMax` is parsed in a thread, so that no other request waits for it.
 *
 * @throws ServiceError `malformed_request`; `unavailable` when too many large bodies wait
 */
export async function readJsonBody(bytes: Uint8Array): Promise<unknown> {
  if (bytes.length <= REQUEST_LIMITS.jsonInlineBytesMax) return parseJsonBody(bytes);
  const answer = await thread.run(bytes);
  if ('value' in answer) return answer.value;
  throw answer.isRefusal ? new ServiceError('malformed_request', answer.problem) : new Error(answer.problem);
}

/** Ends the thread: a process that ends must not have to join it. */
export const endJsonThread = (): Promise<void> => thread.end();
