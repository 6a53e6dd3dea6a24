import type { FieldError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import { WorkerTask } from '../base/worker-task.ts';
import { PasswordQueue, type PasswordTurn } from './password-queue.ts';

/** A password to hash in 2^cost rounds, or to compare with a hash. */
export type PasswordTask = { password: string; cost: number } | { password: string; against: string };
export type PasswordAnswer = { hash: string } | { right: boolean };

/** The mistake in a new password, or null. */
export function passwordProblem(password: string): Omit<FieldError, 'pointer'> | null {
  const bytes = Buffer.byteLength(password);
  const [least, most] = [LIMITS.passwordBytesMin, LIMITS.passwordBytesMax];
  if (bytes < least) return { message: `must have at least ${least} bytes`, code: 'too_few_bytes', limit: least };
  if (bytes > most) {
    const message = `has ${bytes} bytes; at most ${most} are allowed (a Cyrillic letter takes two)`;
    return { message, code: 'too_many_bytes', limit: most };
  }
  if (password.includes('\0')) return { message: 'must not hold a NUL character', code: 'malformed' };
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

/** Cost of the hashes that are stored: 2^12 rounds take a quarter of a second of a processor. */
export const PASSWORD_COST = 12;
/** The least bcrypt takes. */
const PASSWORD_COST_MIN = 4;

let cost = PASSWORD_COST;

/**
 * Sets the cost of hashes that are made from now on, for tests: those of other things than passwords log in a thousand times.
 *
 * @throws RangeError for a cost that bcrypt does not take, or above that of the service
 */
export function setPasswordCost(next: number): void {
  if (!Number.isInteger(next) || next < PASSWORD_COST_MIN || next > PASSWORD_COST)
    throw new RangeError(`the cost of a password is ${PASSWORD_COST_MIN} to ${PASSWORD_COST}, not ${next}`);
  cost = next;
}

export async function hashPassword(password: string): Promise<string> {
  const answer = await thread.run({ password, cost });
  if ('hash' in answer) return answer.hash;
  throw new Error('no hash was made');
}

/** A hash that no password matches, at the cost of new ones, so that checking an unknown account takes as long as checking a known one. */
export const hashOfNoPassword = (): string =>
  `$2b$${String(cost).padStart(2, '0')}$mO8/Rer1zuIoje9qmMG.3.jMoJtxMFlSvtn8gYiNtmYXYjXdPGuHm`;

/** Whether a password is right, when it is this caller's turn; takes the same time without a hash. */
export async function passwordMatches(password: string, hash: string | null, turn: PasswordTurn): Promise<boolean> {
  const given = Buffer.byteLength(password) > LIMITS.passwordBytesMax ? '' : password;
  const against = hash ?? hashOfNoPassword();
  const answer = await queue.run(turn, () => thread.run({ password: given, against }));
  return 'right' in answer && answer.right && hash !== null && given === password;
}
