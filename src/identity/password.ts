import { LIMITS } from '../base/limits.ts';
import { WorkerTask } from '../base/worker-task.ts';
import { PasswordQueue, type PasswordTurn } from './password-queue.ts';

/** A password to hash at a cost, as a power of two, or to compare with a hash. */
export type PasswordTask = { password: string; cost: number } | { password: string; against: string };
export type PasswordAnswer = { hash: string } | { right: boolean };

/** The mistake in a new password, or null. */
export function passwordProblem(password: string): string | null {
  const bytes = Buffer.byteLength(password);
  if (bytes < LIMITS.passwordBytesMin) return `must have at least ${LIMITS.passwordBytesMin} bytes`;
  if (bytes > LIMITS.passwordBytesMax)
    return `has ${bytes} bytes; at most ${LIMITS.passwordBytesMax} are allowed (a Cyrillic letter takes two)`;
  if (password.includes('\0')) return 'must not hold a NUL character';
  return null;
}

/**
 * A thread of its own with a low priority: a computation takes a quarter of a second, which neither requests nor the
 * thread pool that file reads and DNS share should feel (docs/SECURITY.md).
 */
export const passwordThread = (): WorkerTask<PasswordTask, PasswordAnswer> =>
  new WorkerTask({
    file: new URL('./password-worker.ts', import.meta.url),
    does: 'checks passwords',
    threads: 1,
  });

const thread = passwordThread();
const queue = new PasswordQueue();

/** A quarter of a second of a processor for each hash and comparison. */
let cost = 12;

/** Sets what hashes made from now on cost: tests of other things than passwords log in a thousand times. @param rounds from 4 on, as a power of two */
export function setPasswordCost(rounds: number): void {
  cost = rounds;
}

export async function hashPassword(password: string): Promise<string> {
  const answer = await thread.run({ password, cost });
  if ('hash' in answer) return answer.hash;
  throw new Error('no hash was made');
}

/** Of random bytes that were thrown away, so that checking an unknown account takes as long as checking a known one. */
const hashOfNoPassword = (): string =>
  `$2b$${String(cost).padStart(2, '0')}$mO8/Rer1zuIoje9qmMG.3.jMoJtxMFlSvtn8gYiNtmYXYjXdPGuHm`;

/** Whether a password is right, when it is this caller's turn; takes the same time without a hash. */
export async function passwordMatches(password: string, hash: string | null, turn: PasswordTurn): Promise<boolean> {
  const given = Buffer.byteLength(password) > LIMITS.passwordBytesMax ? '' : password;
  const against = hash ?? hashOfNoPassword();
  const answer = await queue.run(turn, () => thread.run({ password: given, against }));
  return 'right' in answer && answer.right && hash !== null && given === password;
}
