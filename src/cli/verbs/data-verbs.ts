import type { Config } from '../../config/load.ts';
import { jsonText } from '../print/json-text.ts';
import { type Command, type Flags, group, JSON_OPTION, out, progressOf, verb } from './verbs.ts';

/** Verbs that work on the service's data on its machine: administrators, backups, personal data, the graph, imports, secrets. */

export type ReadConfig = (flags: Flags) => Promise<Config>;

type AdminFlags = Flags & { email?: string; name?: string; user?: string };

function addAdminVerbs(program: Command, config: ReadConfig): void {
  const admin = group(program, 'admin', 'administrators, whether the service runs or not');
  const run = (name: 'create' | 'reset-password' | 'reset-second-factor' | 'list', about: string): Command =>
    verb<AdminFlags>(admin, name, about, async flags => {
      const { adminCommand } = await import('../local/admin-commands.ts');
      const { email, name: displayName, user } = flags;
      const options = { email, name: displayName, user, json: flags.json === true };
      out(await adminCommand(name, await config(flags), options, progressOf(flags)));
    });
  run('create', 'make an administrator; prints a temporary password')
    .option('--email <address>', 'address the administrator logs in with (needed)')
    .option('--name <name>', 'name that is shown')
    .option('--user <id>', 'the user to make an administrator, instead of a new one')
    .option(...JSON_OPTION);
  run('reset-password', 'give an administrator a new temporary password')
    .option('--email <address>', 'address of the administrator (needed)')
    .option(...JSON_OPTION);
  run('reset-second-factor', 'remove the passkeys and codes of an administrator who lost them')
    .option('--email <address>', 'address of the administrator (needed)')
    .option(...JSON_OPTION);
  run('list', 'list the administrators').option(...JSON_OPTION);
  verb<AdminFlags & { scope?: string[]; expires?: string }>(
    admin,
    'key',
    'make an administration key, which is shown once',
    async f => {
      const { adminKey } = await import('../local/admin-key.ts');
      const { email, expires, name, scope = [] } = f;
      const options = { email, name, scopes: scope, expires, json: f.json === true };
      out(await adminKey(await config(f), options, progressOf(f)));
    },
  )
    .option('--email <address>', 'the administrator it belongs to (needed)')
    .option('--name <name>', 'what it is for (needed)')
    .option('--scope <scope...>', 'what it may: read, operate, access, admin, ... (needed)')
    .option('--expires <time>', 'when it ends: a length of time like 90d (the default), a time, or never')
    .option(...JSON_OPTION);
}

/** Verbs for what is kept: all of it, and what is of one person. */
function addKeepingVerbs(program: Command, config: ReadConfig): void {
  verb(
    program,
    'backup',
    'write the database and the files of users into a folder; the service may run',
    async (flags, [directory = '']) => {
      const { backup } = await import('../local/backup.ts');
      const { manifest, text } = await backup(await config(flags), directory, progressOf(flags));
      out(flags.json === true ? jsonText(manifest) : text);
    },
  )
    .argument('<dir>', 'made by this command')
    .option(...JSON_OPTION);
  verb<Flags & { keepCredentials?: boolean }>(
    program,
    'restore',
    'read a backup into an empty database and data directory',
    async (flags, [directory = '']) => {
      const { restore } = await import('../local/restore.ts');
      const options = { json: flags.json === true, keepCredentials: flags.keepCredentials === true };
      out(await restore(await config(flags), directory, options, progressOf(flags)));
    },
  )
    .argument('<dir>', 'what backup has made')
    .option('--keep-credentials', 'sessions, tokens and keys go on: for a move, when none was revoked since')
    .option(...JSON_OPTION);
  const person = group(program, 'person', 'personal data');
  verb(person, 'export', 'pack everything the service holds of a person', async (flags, [id = '', file = '']) => {
    const { personExport } = await import('../local/person.ts');
    out(await personExport(await config(flags), id, file, flags.json === true, progressOf(flags)));
  })
    .argument('<id>', 'an external id, or user:ID')
    .argument('<file>', 'an archive, like ada.tar.gz')
    .option(...JSON_OPTION);
  verb<Flags & { yes?: boolean }>(person, 'erase', 'remove a person for good', async (flags, [id = '']) => {
    const { personErase } = await import('../local/person.ts');
    const options = { confirmed: flags.yes === true, json: flags.json === true };
    out(await personErase(await config(flags), id, options, progressOf(flags)));
  })
    .argument('<id>', 'an external id, or user:ID')
    .option('--yes', 'do it')
    .option(...JSON_OPTION);
}

function addGraphVerbs(program: Command, config: ReadConfig): void {
  const authz = group(program, 'authz', 'the relationship graph');
  verb<Flags & { repair?: boolean }>(authz, 'drift', 'compare the graph store with the database', async flags => {
    const { authzDrift } = await import('../local/authz-commands.ts');
    const options = { repair: flags.repair === true, json: flags.json === true };
    out(await authzDrift(await config(flags), options, progressOf(flags)));
  })
    .option('--repair', 'bring the graph store in line with the database')
    .option(...JSON_OPTION);
  const sync = group(program, 'sync', "the university's data");
  verb<Flags & { releaseBrake: string[] }>(
    sync,
    'once',
    'pull the data now; ends with 1 when something went wrong',
    async flags => {
      const { syncOnce } = await import('../local/sync-commands.ts');
      const { state, text } = await syncOnce(
        await config(flags),
        flags.releaseBrake,
        flags.json === true,
        flags.json === true ? { write() {} } : process.stderr,
      );
      out(text);
      process.exitCode = state === 'succeeded' ? 0 : 1;
    },
  )
    .option(
      '--release-brake <type>',
      'let this type lose any number of records this time; may be repeated',
      (type: string, types: string[]) => [...types, type],
      [],
    )
    .option(...JSON_OPTION);
  const secrets = group(program, 'secrets', 'the key of stored secrets; stop the service first');
  const change = (name: 'rotate' | 'reset', about: string): void => {
    verb(secrets, name, about, async flags => {
      const { resetSecrets, rotateSecrets } = await import('../local/secrets-commands.ts');
      const run = name === 'rotate' ? rotateSecrets : resetSecrets;
      out(await run(await config(flags), flags.json === true, progressOf(flags)));
    }).option(...JSON_OPTION);
  };
  change('rotate', 'put all stored secrets under a new key');
  change('reset', 'begin with a new key when secrets.key is lost; says what to enter again');
}

/** Adds them to the program. */
export function addDataVerbs(program: Command, config: ReadConfig): void {
  addAdminVerbs(program, config);
  addGraphVerbs(program, config);
  addKeepingVerbs(program, config);
}
