import fs from 'node:fs';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Actor } from '../../audit/audit-log.ts';
import { OperatorError, ServiceError, UsageError } from '../../base/errors.ts';
import { type Config, dataPath } from '../../config/load.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { migrate, pendingMigrations } from '../../db/migrate.ts';
import { type AdminAccount, findAdminByEmail, listAllAdmins } from '../../identity/admin-accounts.ts';
import { createAdminHere, resetPasswordHere } from '../../identity/admin-appointments.ts';
import { resetSecondFactor } from '../../identity/second-factor.ts';
import { holderText, LOCK_FILE } from '../../supervisor/handover/data-lock.ts';
import { findRunningPostgres, startPostgres } from '../../supervisor/stores/embedded-postgres.ts';
import { jsonText } from '../print/json-text.ts';
import { oneLine } from '../print/table.ts';
import { databaseFailure } from './database-failure.ts';
import { lockForCommand } from './lock-for-command.ts';

export type AdminOptions = {
  email: string | undefined;
  name: string | undefined;
  user: string | undefined;
  json: boolean;
};

/** A command that cannot be carried out as it was given. */
export class CommandError extends OperatorError {
  override readonly name = 'CommandError';
}

/** How long a command waits for a service that starts, or for another command. */
const DIRECTORY_MS = 30_000;

type UsedDatabase = { url: string; close(): Promise<void> };

/**
 * The embedded database: the one of the running service, or one started for as long as it takes. The data directory is
 * locked meanwhile, so that a service or another command never starts a second server in it.
 */
async function embeddedDatabase(config: Config, progress: (text: string) => void): Promise<UsedDatabase> {
  const directory = dataPath(config, 'postgres');
  const more = config.unread === '' ? '' : `; ${config.unread}`;
  for (const until = Date.now() + DIRECTORY_MS; ; await sleep(100)) {
    const lock = lockForCommand(dataPath(config), 'command');
    if (lock.state !== 'taken') {
      const own = await startPostgres({ directory, progress, mustExist: true }).catch((error: unknown) => {
        throw more === '' || !(error instanceof OperatorError) ? error : new CommandError(error.message + more);
      });
      return {
        url: own.url,
        async close() {
          await own.stop();
          if (lock.state === 'held') lock.release();
        },
      };
    }
    const url = lock.by?.command === 'serve' ? findRunningPostgres(directory) : null;
    if (url !== null) return { url, close: () => Promise.resolve() };
    if (Date.now() > until)
      throw new CommandError(
        `the data directory ${dataPath(config)} is in use by ${holderText(lock.by)}, whose database does not run; try again when it has ended${more}`,
      );
  }
}

/**
 * Runs something on the service's database, whether the service runs or not: an embedded database that stands still is
 * started for as long as it takes. The schema is left as it is.
 */
export async function withUnmigratedDatabase<T>(
  config: Config,
  progress: (text: string) => void,
  work: (db: Database, url: string) => Promise<T>,
): Promise<T> {
  const remote = config.values['database.url'];
  const used =
    remote === '' ? await embeddedDatabase(config, progress) : { url: remote, close: () => Promise.resolve() };
  // Two connections: some work reads outside its own transaction.
  const db = openDatabase(used.url, 2, () => {});
  try {
    return await work(db, used.url);
  } catch (error) {
    throw databaseFailure(error);
  } finally {
    await db.close();
    await used.close();
  }
}

/** Works with the database of a configuration, after its schema was brought up to date. */
export const withDatabase = <T>(
  config: Config,
  progress: (text: string) => void,
  work: (db: Database, url: string) => Promise<T>,
): Promise<T> =>
  withUnmigratedDatabase(config, progress, async (db, url) => {
    await migrate(db);
    return await work(db, url);
  });

/**
 * Works with the database of a configuration, if it is migrated to this release: a command that only reads must not migrate it
 * under a service of another release.
 *
 * @throws CommandError when it is not
 */
export const withCurrentDatabase = <T>(
  config: Config,
  progress: (text: string) => void,
  work: (db: Database) => Promise<T>,
): Promise<T> =>
  withUnmigratedDatabase(config, progress, async db => {
    const [pending] = await pendingMigrations(db);
    if (pending !== undefined)
      throw new CommandError(
        `the database is not migrated to this release yet (${pending} is missing): start or reload the service first`,
      );
    return await work(db);
  });

/**
 * Works with the database of a configuration as it is: starts no server and migrates nothing.
 *
 * @throws CommandError when the embedded database does not run
 */
export async function withDatabaseAsItIs<T>(config: Config, work: (db: Database) => Promise<T>): Promise<T> {
  const url = config.values['database.url'] || findRunningPostgres(dataPath(config, 'postgres'));
  // Throws when this account may not look.
  const lock = dataPath(config, LOCK_FILE);
  if (url === null && fs.statSync(lock, { throwIfNoEntry: false }) !== undefined)
    fs.accessSync(lock, fs.constants.R_OK);
  if (url === null) throw new CommandError('the embedded database does not run; start the service first');
  const db = openDatabase(url, 2, () => {});
  try {
    return await work(db);
  } catch (error) {
    throw databaseFailure(error);
  } finally {
    await db.close();
  }
}

/** Name of the operator's account; a container may run under a number that has none. */
function accountName(): string {
  try {
    return os.userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

/** Who stands in the audit log for what is done here. */
export const actor = (): Actor => ({
  kind: 'command_line',
  userId: null,
  name: `${accountName()} on the command line`,
  requestId: '',
  address: '',
});

function emailOf(o: AdminOptions): string {
  if (o.email === undefined) throw new UsageError('this command needs --email ADDRESS');
  if (!/^[^\s@]+@[^\s@]+$/.test(o.email) || o.email.length > 254)
    throw new UsageError(`--email is ${JSON.stringify(o.email)}; it must be an email address`);
  return o.email;
}

function userOf(o: AdminOptions): number | null {
  if (o.user === undefined) return null;
  const id = /^[1-9]\d{0,14}$/.test(o.user) ? Number(o.user) : 0;
  if (id === 0) throw new UsageError(`--user is ${JSON.stringify(o.user)}; it must be the id of a user`);
  return id;
}

function shown(account: AdminAccount, password: string, json: boolean): string {
  if (json)
    return jsonText({
      global_user_id: account.userId,
      email: account.email,
      temporary_password: password,
      temporary_until: account.temporaryUntil,
    });
  return [
    `administrator:      ${account.email} (user ${account.userId})`,
    `temporary password: ${password}`,
    `valid until:        ${account.temporaryUntil?.toISOString() ?? ''}, for one login; it must be changed then`,
  ].join('\n');
}

/**
 * `admin create`, `admin reset-password`, `admin reset-second-factor`, `admin list`: recovery without the admin page.
 *
 * @param progress called with slow steps
 * @returns what to print
 * @throws UsageError when an option is missing or wrong, CommandError when it cannot be done
 */
export async function adminCommand(
  verb: 'create' | 'reset-password' | 'reset-second-factor' | 'list',
  config: Config,
  options: AdminOptions,
  progress: (text: string) => void,
): Promise<string> {
  try {
    switch (verb) {
      case 'create': {
        const admin = { email: emailOf(options), name: options.name ?? '', userId: userOf(options) };
        const made = await withDatabase(config, progress, db =>
          createAdminHere(db, { ...admin, name: admin.name || admin.email }, actor()),
        );
        return shown(made.account, made.password, options.json);
      }
      case 'reset-password': {
        const email = emailOf(options);
        const reset = await withDatabase(config, progress, db => resetPasswordHere(db, email, actor()));
        return shown(reset.account, reset.password, options.json);
      }
      case 'reset-second-factor': {
        const email = emailOf(options);
        const account = await withDatabase(config, progress, async db => {
          const found = await findAdminByEmail(db, email);
          if (found === undefined) throw new CommandError(`there is no administrator ${email}: plugin-host admin list`);
          await resetSecondFactor(db, found.userId, actor());
          return found;
        });
        if (options.json) return jsonText({ global_user_id: account.userId, email: account.email });
        return account.hasSecondFactor
          ? `${email} logs in with the password alone now; the sessions have ended`
          : `${email} had no second factor; the sessions have ended`;
      }
      case 'list': {
        const admins = await withCurrentDatabase(config, progress, listAllAdmins);
        if (options.json)
          return jsonText({
            items: admins.map(a => ({
              global_user_id: a.userId,
              email: a.email,
              display_name: a.displayName,
              roles: a.roles,
              plugins: a.plugins,
              has_second_factor: a.hasSecondFactor,
            })),
          });
        return admins
          .map(a => `${String(a.userId).padStart(6)}  ${a.email}  ${oneLine(a.displayName)}  ${a.roles.join(', ')}`)
          .join('\n');
      }
    }
  } catch (error) {
    if (error instanceof ServiceError) throw new CommandError(error.message, { cause: error });
    throw error;
  }
}
