import { accessDenied } from './access-denied.ts';
import { messageOf } from './errors.ts';

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'it is not there',
  ENOTDIR: 'a part of its path is a file, not a folder',
  EISDIR: 'it is a folder, not a file',
  ENAMETOOLONG: 'its path is too long',
  ELOOP: 'its path has links that lead in a circle',
};

/** Why a file cannot be used, in words: of the system where they are known here, otherwise as the error says it. */
export function fileProblem(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return accessDenied(error) ?? WORDS[code] ?? messageOf(error);
}

/** Whether a file could not be opened because it does not exist. */
export const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT';
