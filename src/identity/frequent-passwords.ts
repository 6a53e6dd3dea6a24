import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';

/**
 * Loads the most common passwords from zxcvbn-ts: 49,000 in lower case, without those shorter than the minimum. Loads
 * them when the first password is chosen, which takes 25 ms, so that they do not delay the start.
 */
async function load(): Promise<ReadonlySet<string>> {
  const { dictionary } = await import('@zxcvbn-ts/language-common');
  const words: readonly string[] = dictionary['passwords-common'];
  return new Set(words.filter(w => Buffer.byteLength(w) >= LIMITS.passwordBytesMin));
}

let common: Promise<ReadonlySet<string>> | null = null;

/** Whether a password is among the most common ones, ignoring case. */
export async function isCommonPassword(password: string): Promise<boolean> {
  common ??= load();
  return (await common).has(password.toLowerCase());
}

/** @throws ServiceError `validation_failed` at `pointer` for one of the most common passwords */
export async function assertUncommonPassword(password: string, pointer: string): Promise<void> {
  if (!(await isCommonPassword(password))) return;
  throw new ServiceError('validation_failed', 'the new password is one of the most common ones', {
    errors: [
      {
        pointer,
        message: 'must not be one of the most common passwords; several words in a row are better',
        code: 'too_common',
      },
    ],
  });
}
