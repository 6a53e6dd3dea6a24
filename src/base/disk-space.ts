import fs from 'node:fs';
import { ServiceError } from './errors.ts';

/** The disk that an error reports as full; null for any other error. */
export function fullDiskOf(error: unknown): string | null {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  if (code === '53100') return 'the disk of the database';
  return code === 'ENOSPC' || code === 'EDQUOT' ? 'the disk of the data directory' : null;
}

/** The refusal of a request that needs space on a full disk. */
export function diskFullError(disk: string, cause: unknown): ServiceError {
  return new ServiceError('storage_full', `${disk} is full; an operator must free some space`, {
    cause,
    headers: [['Retry-After', '60']],
  });
}

/** Says that a directory's disk has less free space than required; null when it has enough. */
export function lackOfSpace(directory: string, freeMbMin: number): string | null {
  const { bavail, bsize } = fs.statfsSync(directory);
  const freeMb = Math.floor((bavail * bsize) / 1024 ** 2);
  return freeMb >= freeMbMin
    ? null
    : `the disk of the data directory has ${freeMb} MB free; data.min_free_mb requires ${freeMbMin} MB: delete or move files`;
}
