import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';

/**
 * The most common passwords, as zxcvbn-ts keeps them: 49,000 by frequency, in lower case. Those that are too short to be
 * chosen here are left out. Read when the first password is chosen, in 25 ms, so that a start does not pay for it.
 */
async function load(): Promise<ReadonlySet<string>> {
  const { dictionary } = await import('@zxcvbn-ts/language-common');
  const words: readonly string[] = dictionary['passwords-common'];
  return new Set(words.filter(w => Buffer.byteLength(w) >= LIMITS.passwordBytesMin));
}

let common: Promise<ReadonlySet<string>> | null = null;

/** Whether a password is among the most common ones, however its letters are capitalised. */
export async function isCommonPassword(password: string): Promise<boolean> {
  common ??= load();
  return (await common).has(password.toLowerCase());
}

/** @throws ServiceError `validation_failed` at `pointer` for one of the most common passwords */
export async function assertUncommonPassword(password: string, pointer: string): Promise<void> {
  if (!(await isCommonPassword(password))) return;
  throw new ServiceError('validation_failed', 'the new password is one of the most common ones', {
    errors: [{ pointer, message: 'must not be one of the most common passwords; several words in a row are better' }],
  });
}
