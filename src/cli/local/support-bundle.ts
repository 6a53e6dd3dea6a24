import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { doctor } from '../../app/doctor/doctor.ts';
import { ABOUT_BUNDLE, partsOfDatabase, partsOfMachine, writeParts } from '../../app/support-parts.ts';
import { accessDenied } from '../../base/access-denied.ts';
import { messageOf } from '../../base/errors.ts';
import { packFolder } from '../../base/pack-folder.ts';
import type { Config } from '../../config/load.ts';
import { jsonText } from '../print/json-text.ts';
import { CommandError, withDatabaseAsItIs } from './admin-commands.ts';
import { assertNewPlace } from './assert-new-place.ts';

const run = promisify(execFile);

const JOURNAL_LINES = 2000;
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
const METRICS_MS = 5000;

async function metricsText(config: Config): Promise<string> {
  const { 'metrics.host': host, 'metrics.port': port, 'metrics.token': token } = config.values;
  if (port === 0) return 'metrics.port is not set\n';
  const answer = await fetch(`http://${host.includes(':') ? `[${host}]` : host}:${port}/metrics`, {
    headers: token === '' ? {} : { Authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(METRICS_MS),
  });
  return await answer.text();
}

async function journalText(): Promise<string> {
  const args = ['-u', 'plugin-host*', '-p', 'warning', '-n', String(JOURNAL_LINES), '--no-pager', '-o', 'short-iso'];
  return (await run('journalctl', args, { maxBuffer: OUTPUT_BYTES_MAX })).stdout;
}

/**
 * `support-bundle`: packs what others need to help: configuration without secrets, releases, what `doctor` finds, queues,
 * the last failures. It changes nothing; what cannot be read says why in its place.
 *
 * @param file where the archive is written; it must not be there yet
 * @returns what to print
 * @throws CommandError when the archive cannot be written
 */
export async function supportBundle(config: Config, file: string, json: boolean): Promise<string> {
  assertNewPlace(file, 'file');
  const name = path.basename(file).replace(/\.tar\.gz$/, '');
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'plugin-host-support-'));
  const directory = path.join(scratch, name);
  try {
    fs.mkdirSync(directory);
    fs.writeFileSync(path.join(directory, 'README.txt'), ABOUT_BUNDLE);
    await writeParts(directory, [
      ...partsOfMachine(config),
      ['doctor.json', () => doctor(config)],
      ['metrics.txt', () => metricsText(config)],
      ['journal.txt', journalText],
    ]);
    await withDatabaseAsItIs(config, db => writeParts(directory, partsOfDatabase(db))).catch((error: unknown) =>
      writeParts(directory, [['database.json', () => Promise.reject(error)]]),
    );
    await packFolder(file, scratch, [name]);
  } catch (error) {
    throw new CommandError(`the bundle could not be written: ${accessDenied(error) ?? messageOf(error)}`, {
      cause: error,
    });
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
  return json ? jsonText({ file }) : `${file}: look through it before you pass it on`;
}
