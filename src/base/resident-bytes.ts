import fs from 'node:fs';

const PAGE_BYTES = 4096;

/** Resident memory of a process in bytes; 0 when it has ended, or where the system does not report it. */
export function residentBytes(pid: number | undefined): number {
  try {
    return Number(fs.readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES;
  } catch {
    return 0;
  }
}

let known = 0;

/** Resident memory of this process in bytes; the one known last when the system cannot be asked, as with no descriptor left. */
export function ownResidentBytes(): number {
  try {
    known = process.memoryUsage.rss();
  } catch {}
  return known;
}
