import { threadId } from 'node:worker_threads';

/** A task of a `WorkerTask` that ends in the way its order says. */
export type OddTask = { how: 'answer' | 'throw' | 'throw late' | 'exit' | 'loop' | 'eat' | 'environment'; ms?: number };
export type OddAnswer = { thread: number; environment: number };

export default async function odd({ how, ms = 0 }: OddTask): Promise<OddAnswer> {
  if (ms > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  if (how === 'throw') throw new RangeError('what the task says');
  if (how === 'throw late') {
    setImmediate(() => {
      throw new Error('an error of no task');
    });
    await new Promise(() => {});
  }
  if (how === 'exit') process.exit(3);
  while (how === 'loop');
  const eaten: unknown[] = [];
  while (how === 'eat') eaten.push(Array(1000).fill({}));
  return { thread: threadId, environment: Object.keys(process.env).length };
}
