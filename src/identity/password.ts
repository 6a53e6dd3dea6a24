import bcrypt from 'bcrypt';
import { InTurn } from '../in-turn.ts';

/** bcrypt reads 72 bytes; a longer password is refused, not cut (decisions.md 3). */
export const PASSWORD_BYTES_MIN = 10;
export const PASSWORD_BYTES_MAX = 72;
const COST = 12;
/** More than two computations at once would hold up the thread pool that file reads and DNS share (security.md). */
const turns = new InTurn(2);

/** What is wrong with a new password, or null. */
export function passwordProblem(password: string): string | null {
  const bytes = Buffer.byteLength(password);
  if (bytes < PASSWORD_BYTES_MIN) return `must have at least ${PASSWORD_BYTES_MIN} bytes`;
  if (bytes > PASSWORD_BYTES_MAX)
    return `has ${bytes} bytes; at most ${PASSWORD_BYTES_MAX} are allowed (a Cyrillic letter takes two)`;
  if (password.includes('\0')) return 'must not hold a NUL character';
  return null;
}

export function hashPassword(password: string): Promise<string> {
  return turns.run(() => bcrypt.hash(password, COST));
}

/** Hash of nobody's password: an unknown account takes the same time. */
let nobody: Promise<string> | null = null;

/** Whether a password is right; takes the same time when there is no hash. */
export async function passwordMatches(password: string, hash: string | null): Promise<boolean> {
  nobody ??= hashPassword('the password of nobody');
  const against = hash ?? (await nobody);
  const given = Buffer.byteLength(password) > PASSWORD_BYTES_MAX ? '' : password;
  const right = await turns.run(() => bcrypt.compare(given, against));
  return right && hash !== null && given === password;
}
