import { Worker } from 'node:worker_threads';
import { LIMITS } from '../base/limits.ts';
import { SingleThread } from '../base/single-thread.ts';

/** A password to compare with a hash, or without one to hash. */
export type PasswordTask = { password: string; against: string | null };
export type PasswordAnswer = { hash: string } | { right: boolean } | { error: string };

/** The mistake in a new password, or null. */
export function passwordProblem(password: string): string | null {
  const bytes = Buffer.byteLength(password);
  if (bytes < LIMITS.passwordBytesMin) return `must have at least ${LIMITS.passwordBytesMin} bytes`;
  if (bytes > LIMITS.passwordBytesMax)
    return `has ${bytes} bytes; at most ${LIMITS.passwordBytesMax} are allowed (a Cyrillic letter takes two)`;
  if (password.includes('\0')) return 'must not hold a NUL character';
  return null;
}

/** Starts the thread that hashes and compares passwords, without access to the environment. */
export const startPasswordWorker = (): Worker =>
  new Worker(new URL('./password-worker.ts', import.meta.url), { env: {} });

/**
 * A separate thread with low priority: a computation takes a quarter of a second, and should delay neither requests nor
 * the thread pool for file reads and DNS (docs/SECURITY.md).
 *
 * @param makeWorker starts a thread that runs `password-worker.ts`
 */
export const passwordThread = (makeWorker: () => Worker): SingleThread<PasswordTask, PasswordAnswer> =>
  new SingleThread({
    makeWorker,
    does: 'checks passwords',
    waitingMax: LIMITS.passwordsWaitingMax,
    retryAfterSeconds: 5,
  });

const thread = passwordThread(startPasswordWorker);

export async function hashPassword(password: string): Promise<string> {
  const answer = await thread.run({ password, against: null });
  if ('hash' in answer) return answer.hash;
  throw new Error('error' in answer ? answer.error : 'no hash was made');
}

/** Hash of discarded random bytes, so that checking an unknown account takes as long as checking a known one. */
const HASH_OF_NO_PASSWORD = '$2b$12$mO8/Rer1zuIoje9qmMG.3.jMoJtxMFlSvtn8gYiNtmYXYjXdPGuHm';

/** Whether a password is right; takes the same time without a hash. */
export async function passwordMatches(password: string, hash: string | null): Promise<boolean> {
  const given = Buffer.byteLength(password) > LIMITS.passwordBytesMax ? '' : password;
  const answer = await thread.run({ password: given, against: hash ?? HASH_OF_NO_PASSWORD });
  if ('error' in answer) throw new Error(answer.error);
  return 'right' in answer && answer.right && hash !== null && given === password;
}
