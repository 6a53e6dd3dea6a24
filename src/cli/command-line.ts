import type { UsageError } from '../base/errors.ts';
import type { Config } from '../config/load.ts';
import type { Program } from '../supervisor/program.ts';
import type { OptionOutline, ProgramOutline } from './command-outline.ts';
import { addRemoteVerbs } from './remote-verbs.ts';
import {
  asCommanderError,
  type Command,
  type Flags,
  group,
  JSON_OPTION,
  makeCommand,
  noCommand,
  out,
  progress,
  unlike,
  verb,
  wordsOf,
} from './verbs.ts';

/**
 * The command line: its verbs, their options and help. What a verb does is loaded when it is called, because the supervisor starts through
 * here and `help` needs none of it.
 */

/** The configuration file; null for none. */
const fileOf = (flags: Flags, env: NodeJS.ProcessEnv): string | null => flags.config ?? env.BOT_CONFIG ?? null;

type AdminFlags = Flags & { email?: string; name?: string; user?: string };

type ReadConfig = (flags: Flags) => Promise<Config>;

function addServiceVerbs(program: Command, config: ReadConfig, serves: () => Program, env: NodeJS.ProcessEnv): void {
  verb<Flags & { sample?: boolean }>(program, 'serve', 'run the service', async flags => {
    const started = serves();
    const { serve } = await import('./serve.ts');
    const { loadConfig } = await import('../config/load.ts');
    const readConfig = (): Config => loadConfig(fileOf(flags, env), env);
    await serve({ readConfig, sample: flags.sample === true, environment: env, program: started });
  }).option('--sample', 'build and install the sample plugin');
  verb(program, 'reload', 'replace the serving processes of the running service, one by one', async flags => {
    const { reloadCommand } = await import('./reload-command.ts');
    out(await reloadCommand(await config(flags), progress));
  });
  const migrate = group(program, 'migrate', 'the schema of the database of database.url');
  verb(migrate, 'status', 'list the migrations, and whether this release runs on the database', async flags => {
    const { migrateStatus } = await import('./migrate-command.ts');
    out(await migrateStatus(await config(flags), flags.json === true));
  }).option(...JSON_OPTION);
  const up = async (flags: Flags): Promise<void> => {
    const { migrateUp } = await import('./migrate-command.ts');
    out(await migrateUp(await config(flags)));
  };
  verb(migrate, 'up', 'bring the database up to date; also plugin-host migrate', up, true);
  const configuration = group(program, 'config', 'the configuration');
  verb(configuration, 'check', 'print the effective configuration with its sources', async flags => {
    const { configCheck } = await import('./config-check.ts');
    out(configCheck(await config(flags), flags.json === true));
  }).option(...JSON_OPTION);
  verb(configuration, 'example', 'print a configuration file with every key as a comment', async () => {
    const { exampleFile } = await import('../config/example-file.ts');
    process.stdout.write(exampleFile());
  });
  verb(program, 'doctor', 'look at everything the service needs; ends with 1 when something fails', async flags => {
    const { doctor, shownChecks } = await import('./doctor.ts');
    const checks = await doctor(await config(flags));
    out(flags.json === true ? JSON.stringify({ checks }) : shownChecks(checks));
    // What does not answer must not keep the command.
    process.exit(checks.some(c => c.state === 'failed') ? 1 : 0);
  }).option(...JSON_OPTION);
  verb(program, 'support-bundle', 'pack what others need to help, without secrets', async (flags, [file]) => {
    const { bundleName, supportBundle } = await import('./support-bundle.ts');
    out(await supportBundle(await config(flags), file ?? bundleName(new Date())));
  }).argument('[file]', 'where to write it; plugin-host-support-TIME.tar.gz without it');
  verb(program, 'ready', 'ask the service on this machine whether it is ready; ends with 1 when not', async flags => {
    const { readyCommand } = await import('./ready.ts');
    out(await readyCommand(await config(flags)));
  });
  verb(program, 'openapi', 'print the OpenAPI document of the API', async () => {
    const { openapiCommand } = await import('./openapi-command.ts');
    out(openapiCommand());
  });
  verb(program, 'version', 'print the version', async flags => {
    const { version } = await import('./version.ts');
    out(version(flags.json === true));
  }).option(...JSON_OPTION);
}

function addAdminVerbs(program: Command, config: ReadConfig): void {
  const admin = group(program, 'admin', 'administrators, whether the service runs or not');
  const run = (name: 'create' | 'reset-password' | 'list', about: string): Command =>
    verb<AdminFlags>(admin, name, about, async flags => {
      const { adminCommand } = await import('./admin-commands.ts');
      const { email, name: displayName, user } = flags;
      const options = { email, name: displayName, user, json: flags.json === true };
      out(await adminCommand(name, await config(flags), options, progress));
    });
  run('create', 'make an administrator; prints a temporary password')
    .option('--email <address>', 'address the administrator logs in with (needed)')
    .option('--name <name>', 'name that is shown')
    .option('--user <id>', 'the user to make an administrator, instead of a new one')
    .option(...JSON_OPTION);
  run('reset-password', 'give an administrator a new temporary password')
    .option('--email <address>', 'address of the administrator (needed)')
    .option(...JSON_OPTION);
  run('list', 'list the administrators').option(...JSON_OPTION);
  verb<AdminFlags & { scope?: string[] }>(admin, 'key', 'make an administration key, which is shown once', async f => {
    const { adminKey } = await import('./admin-key.ts');
    const options = { email: f.email, name: f.name, scopes: f.scope ?? [], json: f.json === true };
    out(await adminKey(await config(f), options, progress));
  })
    .option('--email <address>', 'the administrator it belongs to (needed)')
    .option('--name <name>', 'what it is for (needed)')
    .option('--scope <scope...>', 'what it may: read, operate, access, admin, ... (needed)')
    .option(...JSON_OPTION);
}

/** Verbs for what is kept: all of it, and what is of one person. */
function addKeepingVerbs(program: Command, config: ReadConfig): void {
  verb(
    program,
    'backup',
    'write the database and the files of users into a folder; the service may run',
    async (flags, [directory = '']) => {
      const { backup } = await import('./backup.ts');
      const { manifest, text } = await backup(await config(flags), directory, progress);
      out(flags.json === true ? JSON.stringify(manifest, null, 2) : text);
    },
  )
    .argument('<dir>', 'made by this command')
    .option(...JSON_OPTION);
  verb(
    program,
    'restore',
    'read a backup into an empty database and data directory',
    async (flags, [directory = '']) => {
      const { restore } = await import('./restore.ts');
      out(await restore(await config(flags), directory, progress));
    },
  ).argument('<dir>', 'what backup has made');
  const person = group(program, 'person', 'personal data');
  verb(person, 'export', 'pack everything the service holds of a person', async (flags, [id = '', file = '']) => {
    const { personExport } = await import('./person.ts');
    out(await personExport(await config(flags), id, file, progress));
  })
    .argument('<id>', 'an external id, or user:ID')
    .argument('<file>', 'an archive, like ada.tar.gz');
  verb<Flags & { yes?: boolean }>(person, 'erase', 'remove a person for good', async (flags, [id = '']) => {
    const { personErase } = await import('./person.ts');
    const options = { confirmed: flags.yes === true, json: flags.json === true };
    out(await personErase(await config(flags), id, options, progress));
  })
    .argument('<id>', 'an external id, or user:ID')
    .option('--yes', 'do it')
    .option(...JSON_OPTION);
}

function addDataVerbs(program: Command, config: ReadConfig): void {
  const authz = group(program, 'authz', 'the relationship graph');
  verb<Flags & { repair?: boolean }>(authz, 'drift', 'compare the graph store with the database', async flags => {
    const { authzDrift } = await import('./authz-commands.ts');
    const options = { repair: flags.repair === true, json: flags.json === true };
    out(await authzDrift(await config(flags), options, progress));
  })
    .option('--repair', 'bring the graph store in line with the database')
    .option(...JSON_OPTION);
  const sync = group(program, 'sync', "the university's data");
  verb<Flags & { releaseBrake: string[] }>(
    sync,
    'once',
    'pull the data now; ends with 1 when something went wrong',
    async flags => {
      const { syncOnce } = await import('./sync-commands.ts');
      const { state, text } = await syncOnce(
        await config(flags),
        flags.releaseBrake,
        flags.json === true,
        process.stderr,
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
      const { resetSecrets, rotateSecrets } = await import('./secrets-commands.ts');
      const run = name === 'rotate' ? rotateSecrets : resetSecrets;
      out(await run(await config(flags), flags.json === true, progress));
    }).option(...JSON_OPTION);
  };
  change('rotate', 'put all stored secrets under a new key');
  change('reset', 'begin with a new key when secrets.key is lost; says what to enter again');
}

/** Verbs that tell of the command line itself. */
function addOwnVerbs(program: Command): void {
  verb(
    program,
    'completion <shell>',
    'print the completion script for a shell (bash)',
    async (_flags, [shell = '']) => {
      const { completion } = await import('./completion.ts');
      process.stdout.write(completion(shell, outlineOf(program)));
    },
  );
  verb(program, 'man', 'print the manual page, for man(1)', async () => {
    const { manPage } = await import('./man-page.ts');
    const { serviceVersion } = await import('../base/version.ts');
    process.stdout.write(manPage(outlineOf(program), serviceVersion()));
  });
}

function outlineOf(program: Command): ProgramOutline {
  const options = (command: Command): OptionOutline[] =>
    command.options.map(o => ({
      flags: o.flags,
      about: o.description,
      long: o.long ?? '',
      takesValue: o.required || o.optional,
    }));
  const commands = leavesOf(program).map(c => ({
    words: wordsOf(c),
    args: c.registeredArguments.map(a => a.name()),
    about: c.description(),
    options: options(c),
  }));
  return { about: program.description(), options: options(program), commands };
}

const leavesOf = (command: Command): Command[] =>
  command.commands.flatMap(c => (c.commands.length === 0 ? [c] : leavesOf(c)));

function findCommand(program: Command, words: readonly string[]): Command {
  let found = program;
  for (const word of words) {
    const next = found.commands.find(c => c.name() === word);
    if (next === undefined) throw noCommand(found, word);
    found = next;
  }
  return found;
}

/** The command that arguments lead to, as far as they name one; options may stand between. */
function nearestCommand(program: Command, args: readonly string[]): Command {
  let found = program;
  for (const arg of args) found = found.commands.find(c => c.name() === arg) ?? found;
  return found;
}

/** @param serves called when the process becomes the service, which outlives the reader of what it prints */
function makeProgram(environment: NodeJS.ProcessEnv, serves: () => Program): Command {
  const program = makeCommand('plugin-host')
    .description('Runs WebAssembly plugins behind HTTP endpoints')
    .option('--config <file>', 'YAML file with the configuration')
    .addHelpText(
      'after',
      '\nConfiguration: defaults < YAML file (--config, else BOT_CONFIG) < environment (BOT_<SECTION>_<KEY>).\n' +
        'A command ends with 0, with 1 when it failed, with 2 when it was not understood, and with 3 when the service found what it was sent wrong.',
    )
    .helpCommand(false)
    .helpOption('-h, --help', 'show the help of the command')
    // One page shows every command there is.
    .configureHelp({
      showGlobalOptions: true,
      visibleCommands: leavesOf,
      subcommandTerm: c => {
        const given = c.registeredArguments.filter(a => a.required).map(a => `<${a.name()}>`);
        return [...wordsOf(c), ...given, ...(c.options.length > 0 ? ['[options]'] : [])].join(' ');
      },
    })
    .configureOutput({ outputError: () => {} })
    .exitOverride();
  const config: ReadConfig = async flags => {
    const { loadConfig } = await import('../config/load.ts');
    return loadConfig(fileOf(flags, environment), environment);
  };
  addServiceVerbs(program, config, serves, environment);
  addAdminVerbs(program, config);
  addDataVerbs(program, config);
  addKeepingVerbs(program, config);
  addRemoteVerbs(program, environment);
  addOwnVerbs(program);
  program
    .command('help')
    .description('show this, or the options of a command')
    .argument('[command...]')
    .action((words: string[]) => findCommand(program, words).outputHelp());
  return program;
}

/** `error: unknown option '--jsno'\n(Did you mean --json?)` as one line like all others. */
function misunderstood(text: string, words: readonly string[]): UsageError {
  const [, problem = text, meant] = /^(?:error: )?(.+?)\.?(?:\n\(Did you mean (.+)\?\))?$/.exec(text) ?? [];
  return unlike(problem, meant === undefined ? '' : `; did you mean "${meant}"?`, words);
}

/**
 * Runs what the arguments say.
 *
 * @param started how the process was started; its arguments are those behind the program's name
 * @param environment with `BOT_...` for the configuration
 * @throws UsageError when they cannot be understood, OperatorError when it cannot be done
 */
export async function runCommandLine(started: Program, environment: NodeJS.ProcessEnv): Promise<void> {
  const { args } = started;
  let isService = false;
  // A reader that has seen enough (`config check | head`) is no failure of a command; the service outlives the reader of its log.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (isService && error.code === 'EPIPE') return;
    if (error.code === 'EPIPE') process.exit(0);
    process.stderr.write(`plugin-host: what was asked for cannot be written: ${error.message}\n`);
    process.exit(1);
  });
  const program = makeProgram(environment, () => {
    isService = true;
    return started;
  });
  try {
    await program.parseAsync(args.length === 0 ? ['help'] : [...args], { from: 'user' });
  } catch (error) {
    const stopped = asCommanderError(error);
    if (stopped === undefined) throw error;
    // Help was asked for, or shown because the verb is missing.
    if (stopped.code === 'commander.help' || stopped.exitCode === 0) process.exitCode = stopped.exitCode === 0 ? 0 : 2;
    else throw misunderstood(stopped.message, wordsOf(nearestCommand(program, args)));
  }
}
