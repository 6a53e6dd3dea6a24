import { accessDenied } from '../../base/access-denied.ts';
import { OperatorError, UsageError } from '../../base/errors.ts';
import type { Config } from '../../config/load.ts';
import type { Program } from '../../supervisor/handover/program.ts';
import type { BenchFlags } from '../local/bench-command.ts';
import { jsonText } from '../print/json-text.ts';
import type { OptionOutline, ProgramOutline } from './command-outline.ts';
import { addDataVerbs, type ReadConfig } from './data-verbs.ts';
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
  progressOf,
  repeated,
  unlike,
  verb,
  wordsOf,
} from './verbs.ts';

/**
 * The command line: its verbs, their options and help. What a verb does is loaded when it is called, because the supervisor starts through
 * here and `help` needs none of it.
 */

/** The configuration file; null for none. A variable that is set to nothing names none. @throws UsageError */
function fileOf(flags: Flags, env: NodeJS.ProcessEnv): string | null {
  if (flags.config === '') throw new UsageError('--config is empty: name a file, or leave it out');
  return flags.config ?? (env.BOT_CONFIG || null);
}

function addMigrateVerbs(program: Command, config: ReadConfig): void {
  const migrate = group(program, 'migrate', 'the schema of the database of database.url');
  verb(migrate, 'status', 'list the migrations, and whether this release runs on the database', async flags => {
    const { migrateStatus } = await import('../local/migrate-command.ts');
    out(await migrateStatus(await config(flags), flags.json === true, progressOf(flags)));
  }).option(...JSON_OPTION);
  const up = async (flags: Flags): Promise<void> => {
    const { migrateUp } = await import('../local/migrate-command.ts');
    out(await migrateUp(await config(flags), flags.json === true));
  };
  verb(migrate, 'up', 'bring the database up to date; also plugin-host migrate', up, true).option(...JSON_OPTION);
}

function addServiceVerbs(program: Command, serves: () => Program, env: NodeJS.ProcessEnv): void {
  verb<Flags & { sample?: boolean }>(program, 'serve', 'run the service', async flags => {
    const started = serves();
    const { serve } = await import('../local/serve.ts');
    const { loadConfig } = await import('../../config/load.ts');
    const { assertSameFile } = await import('../../supervisor/handover/reloaded-config.ts');
    const file = fileOf(flags, env);
    const readConfig = (named: string | null = null): Config => {
      assertSameFile(file, named);
      return loadConfig(file, env);
    };
    await serve({ readConfig, sample: flags.sample === true, environment: env, program: started });
  }).option('--sample', 'build and install the sample plugin');
  verb(program, 'reload', 'replace the serving processes of the running service, one by one', async flags => {
    const { reloadCommand } = await import('../local/reload-command.ts');
    const { loadConfig } = await import('../../config/load.ts');
    const file = fileOf(flags, env);
    // It needs `data.dir` alone. Systemd 252 (Debian 12) names the folder of credentials to `ExecReload=`, and hides it.
    const { CREDENTIALS_DIRECTORY: _, ...others } = env;
    out(await reloadCommand(loadConfig(file, others), file, flags.json === true, progressOf(flags)));
  }).option(...JSON_OPTION);
}

/** Verbs that look at the configuration, at the machine and at the service, and change nothing. */
function addLookingVerbs(program: Command, config: ReadConfig, ownersConfig: ReadConfig): void {
  const configuration = group(program, 'config', 'the configuration');
  verb(configuration, 'check', 'print the effective configuration with its sources', async flags => {
    const { configCheck } = await import('../local/config-check.ts');
    out(configCheck(await config(flags), flags.json === true));
  }).option(...JSON_OPTION);
  verb(configuration, 'example', 'print a configuration file with every key as a comment', async () => {
    const { exampleFile } = await import('../../config/example-file.ts');
    process.stdout.write(exampleFile());
  });
  verb(program, 'doctor', 'look at everything the service needs; ends with 1 when something fails', async flags => {
    const { doctor, shownChecks } = await import('../../app/doctor/doctor.ts');
    const checks = await doctor(await ownersConfig(flags));
    out(flags.json === true ? jsonText({ checks }) : shownChecks(checks));
    // A service that does not answer must not keep the command.
    process.exit(checks.some(c => c.state === 'failed') ? 1 : 0);
  }).option(...JSON_OPTION);
  verb(program, 'support-bundle', 'pack what others need to help, without secrets', async (flags, [file]) => {
    const { supportBundle } = await import('../local/support-bundle.ts');
    const { bundleName } = await import('../../app/support-parts.ts');
    out(await supportBundle(await config(flags), file ?? bundleName(new Date()), flags.json === true));
  })
    .argument('[file]', 'where to write it; plugin-host-support-TIME.tar.gz without it')
    .option(...JSON_OPTION);
  verb(program, 'ready', 'ask the service on this machine whether it is ready; ends with 1 when not', async flags => {
    const { readyCommand } = await import('../local/ready.ts');
    out(await readyCommand(await config(flags), flags.json === true));
  }).option(...JSON_OPTION);
  verb(program, 'openapi', 'print the OpenAPI document of the API', async () => {
    const { openapiCommand } = await import('../local/openapi-command.ts');
    out(openapiCommand());
  });
  verb(program, 'version', 'print the version', async flags => {
    const { version } = await import('../local/version.ts');
    out(version(flags.json === true));
  }).option(...JSON_OPTION);
}

function addBenchVerb(program: Command, environment: NodeJS.ProcessEnv, started: Program): void {
  verb<BenchFlags & Flags>(
    program,
    'bench <target>',
    'measure a plugin: a module, the folder of one, or the address of a trigger',
    async (flags, [target = '']) => {
      const { benchCommand } = await import('../local/bench-command.ts');
      out(await benchCommand(target, flags, { environment, program: started, progress: progressOf(flags) }));
    },
  )
    .option('--path <path>', 'path of the trigger, as its manifest has it, with a query; of an address the whole path')
    .option('--method <method>', 'method; without it the first one of the trigger, or POST with --data')
    .option('--data <text>', 'body to send, JSON unless a header says otherwise')
    .option('--header <line>', 'a header, like "Name: value"; may be repeated', repeated, [])
    .option('--connections <number>', 'connections at saturation; 64 without it')
    .option(
      '--rate <number>',
      'requests a second of the fixed rate; without it half of what all connections got. An address gets no more than this',
    )
    .option('--seconds <number>', 'length of each measurement; 5 without it')
    .option('--config-file <file>', 'JSON with the configuration of the plugin')
    .option('--compare <file>', 'file of the last result, which is replaced; for a module MODULE.bench.json without it')
    .option(...JSON_OPTION);
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
    const { serviceVersion } = await import('../../base/version.ts');
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

/**
 * @param started how this process was started
 * @param serves called when the process becomes the service, which outlives the reader of what it prints
 */
function makeProgram(environment: NodeJS.ProcessEnv, started: Program, serves: () => Program): Command {
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
    const { loadConfig } = await import('../../config/load.ts');
    return loadConfig(fileOf(flags, environment), environment);
  };
  const ownersConfig: ReadConfig = async flags => {
    const read = await config(flags);
    const { continueAsOwner } = await import('../local/as-owner.ts');
    continueAsOwner(read);
    return read;
  };
  addServiceVerbs(program, serves, environment);
  addMigrateVerbs(program, ownersConfig);
  addLookingVerbs(program, config, ownersConfig);
  addDataVerbs(program, ownersConfig);
  addRemoteVerbs(program, environment, config);
  addBenchVerb(program, environment, started);
  addOwnVerbs(program);
  program
    .command('help')
    .description('show this, or the options of a command')
    .argument('[command...]')
    .action((words: string[]) => findCommand(program, words).outputHelp());
  return program;
}

/** `error: unknown option '--jsno'\n(Did you mean --json?)` as one line like all others. */
function misunderstood(text: string, nearest: Command, args: readonly string[]): UsageError {
  const [, problem = text, meant] = /^(?:error: )?(.+?)\.?(?:\n\(Did you mean (.+)\?\))?$/.exec(text) ?? [];
  const words = wordsOf(nearest);
  // A group whose default command took the word as its argument, like `migrate dwn`.
  const unknown = args.slice(args.lastIndexOf(nearest.name()) + 1).find(arg => !arg.startsWith('-'));
  if (nearest.commands.length > 0 && unknown !== undefined && problem.startsWith('too many'))
    return noCommand(nearest, unknown);
  const [, option = ''] = /^unknown option '([^']+)'$/.exec(problem) ?? [];
  if (nearest.options.some(o => o.long === option)) return unlike(`${option} stands behind the command`, '', words);
  return unlike(problem, meant === undefined ? '' : `; did you mean "${meant}"?`, words);
}

/** For a file of the service that belongs to another account; null for any other error. */
function deniedError(error: unknown): OperatorError | null {
  const denied = accessDenied(error);
  return denied === null ? null : new OperatorError(denied, { cause: error });
}

/**
 * Runs what the arguments say.
 *
 * @param started how the process was started; its arguments are those behind the program's name
 * @param environment with `BOT_...` for the configuration
 * @throws UsageError when they cannot be understood, OperatorError when it cannot be done
 */
export async function runCommandLine(started: Program, environment: NodeJS.ProcessEnv): Promise<void> {
  const args = ['--version', '-V', '-v'].includes(started.args.join(' ')) ? ['version'] : started.args;
  let isService = false;
  // A reader that has seen enough (`config check | head`) is no failure of a command; the service outlives the reader of its log.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (isService && error.code === 'EPIPE') return;
    if (error.code === 'EPIPE') process.exit(0);
    process.stderr.write(`plugin-host: what was asked for cannot be written: ${error.message}\n`);
    process.exit(1);
  });
  const program = makeProgram(environment, started, () => {
    isService = true;
    return started;
  });
  try {
    await program.parseAsync(args.length === 0 ? ['help'] : [...args], { from: 'user' });
  } catch (error) {
    const stopped = asCommanderError(error);
    if (stopped === undefined) throw error instanceof OperatorError ? error : (deniedError(error) ?? error);
    // Help was asked for, or shown because the verb is missing.
    if (stopped.code === 'commander.help' || stopped.exitCode === 0) process.exitCode = stopped.exitCode === 0 ? 0 : 2;
    else throw misunderstood(stopped.message, nearestCommand(program, args), args);
  }
}
