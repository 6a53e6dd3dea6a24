import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import { type Config, credentialsToEnv, dataPath } from '../config/load.ts';
import type { Program } from '../supervisor/program.ts';

/**
 * Runs a command of root once more, as the account that owns the data directory, and ends with its exit code: the service
 * runs as that account, and could not use what root makes there. What root alone can read, the credentials of systemd,
 * goes along as environment variables. Returns when there is nothing to change: another account runs the command, or the
 * directory is root's or not there.
 */
export function continueAsOwner(config: Config, program: Program, env: NodeJS.ProcessEnv): void {
  const owned = fs.statSync(dataPath(config), { throwIfNoEntry: false });
  if (process.geteuid?.() !== 0 || owned === undefined || owned.uid === 0) return;
  const { uid, gid } = owned;
  const { entry, node, nodeArgs, args } = program;
  const { CREDENTIALS_DIRECTORY: _, ...others } = env;
  const { error, signal, status } = spawnSync(node, [...nodeArgs, entry, ...args], {
    uid,
    gid,
    env: { ...others, ...credentialsToEnv(config) },
    stdio: 'inherit',
  });
  if (error !== undefined) throw error;
  process.exit(signal === null ? (status ?? 1) : 128 + os.constants.signals[signal]);
}
