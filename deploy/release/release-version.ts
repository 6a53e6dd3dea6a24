import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

const git = (project: string, ...args: string[]): string =>
  execFileSync('git', args, { cwd: project, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();

/** The version in package.json. */
export function packageVersion(project: string): string {
  const { version } = JSON.parse(fs.readFileSync(path.join(project, 'package.json'), 'utf8'));
  return String(version);
}

/**
 * The version of a release made from these sources: that of package.json when the commit has its tag (`v1.2.3`), or when there is no
 * history; otherwise with the number of commits and the commit behind it, which sorts after it (`1.2.3+500.0123abc`).
 *
 * @param project directory of the sources
 */
export function releaseVersion(project: string): string {
  const version = packageVersion(project);
  try {
    const isDirty = git(project, 'status', '--porcelain') !== '';
    if (!isDirty && git(project, 'tag', '--points-at', 'HEAD').split('\n').includes(`v${version}`)) return version;
    const count = git(project, 'rev-list', '--count', 'HEAD');
    return `${version}+${count}.${git(project, 'rev-parse', '--short=7', 'HEAD')}${isDirty ? '.changed' : ''}`;
  } catch {
    return version;
  }
}

/** When the sources were made, in seconds: files of a release have no other time, so that the same commit makes the same archive. */
export function releaseTime(project: string): number {
  const given = process.env.SOURCE_DATE_EPOCH;
  if (given !== undefined && /^\d+$/.test(given)) return Number(given);
  try {
    return Number(git(project, 'log', '-1', '--format=%ct'));
  } catch {
    return Math.floor(fs.statSync(path.join(project, 'package.json')).mtimeMs / 1000);
  }
}
