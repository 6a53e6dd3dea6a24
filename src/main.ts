#!/usr/bin/env node
import fs from 'node:fs';
import { parseArgs } from 'node:util';
import { messageOf, OperatorError } from './base/errors.ts';
import { type Config, ConfigError, dataPath, describeConfig, loadConfig, publicUrlProblem } from './config/load.ts';

/** Process entry and command line; the one place that reads argv and the environment. */

const USAGE = `plugin-host: runs WebAssembly plugins behind HTTP endpoints

  plugin-host serve [--config FILE] [--sample]   run the service; --sample installs the sample plugin
  plugin-host migrate [--config FILE]            bring the database of database.url up to date
  plugin-host config check [--config FILE] [--json]
                                                 print the effective configuration with its sources
  plugin-host admin create --email ADDRESS [--name NAME] [--user ID] [--json]
                                                 make an administrator; prints a temporary password
  plugin-host admin reset-password --email ADDRESS [--json]
                                                 give an administrator a new temporary password
  plugin-host admin list [--json]                list the administrators
  plugin-host authz drift [--repair] [--config FILE] [--json]
                                                 compare the graph store with the database, and mend it
  plugin-host sync once [--release-brake TYPE] [--config FILE] [--json]
                                                 pull the university's data now; ends with 1 when something went wrong
  plugin-host secrets rotate [--json]            put all stored secrets under a new key; stop the service first
  plugin-host secrets reset [--json]             begin with a new key when secrets.key is lost; says what to enter again
  plugin-host doctor [--config FILE] [--json]    look at everything the service needs; ends with 1 when something fails
  plugin-host version [--json]
  plugin-host help

Configuration: defaults < YAML file (--config, else BOT_CONFIG) < environment (BOT_<SECTION>_<KEY>).
`;

class UsageError extends OperatorError {}

const out = (text: string): void => void process.stdout.write(`${text}\n`);

function version(): string {
  const text = fs.readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  const value: unknown = JSON.parse(text);
  return typeof value === 'object' && value !== null && 'version' in value ? String(value.version) : 'unknown';
}

/** Signals that come together are one: npm passes on what the terminal or systemd has sent to the service as well. */
const SAME_SIGNAL_MS = 1000;

async function serve(config: Config, sample: boolean): Promise<void> {
  const { Supervisor } = await import('./supervisor/supervisor.ts');
  const { checkDataDirectory } = await import('./supervisor/start-checks.ts');
  const { buildSample } = await import('./supervisor/build-sample.ts');
  const { makeAnnouncer } = await import('./supervisor/announce.ts');
  const announcer = makeAnnouncer(config, sample, process.stdout);
  const { progress } = announcer;
  checkDataDirectory(dataPath(config), announcer.warn);
  const samplePath = sample ? await buildSample(dataPath(config, 'sample'), progress) : null;
  const problem = publicUrlProblem(config);
  if (problem !== null) announcer.warn(problem);
  const supervisor = new Supervisor({
    config,
    samplePath,
    environment: process.env,
    progress,
    warn: announcer.warn,
    ready(port, token, first) {
      if (first) announcer.ready(port, token);
      else progress(`ready again on port ${port}`);
    },
  });
  let stoppedAt: number | null = null;
  const stop = (signal: string): void => {
    if (stoppedAt !== null && performance.now() - stoppedAt < SAME_SIGNAL_MS) return;
    if (stoppedAt !== null) {
      progress('stopping at once');
      supervisor.kill();
      return;
    }
    stoppedAt = performance.now();
    progress(`${signal}: stopping`);
    supervisor.stop().then(() => {
      progress('stopped');
      process.exit(0);
    });
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop(signal));
  try {
    await supervisor.start();
  } catch (error) {
    await supervisor.stop();
    if (stoppedAt === null) throw error;
  }
}

async function runMigrate(config: Config): Promise<void> {
  const { openDatabase } = await import('./db/database.ts');
  const { migrate } = await import('./db/migrate.ts');
  const ownerUrl = config.values['database.owner_url'];
  if (config.values['database.url'] === '')
    throw new ConfigError('migrate needs database.url (BOT_DATABASE_URL); the embedded database is migrated at start');
  if (ownerUrl !== '') {
    const { prepareDatabase, roleOfUrl } = await import('./db/service-role.ts');
    const applied = await prepareDatabase(ownerUrl, () => roleOfUrl(config.values['database.url']));
    return out(applied.length === 0 ? 'the database is up to date' : `applied ${applied.join(', ')}`);
  }
  const db = openDatabase(config.values['database.url'], 1, () => {});
  try {
    const applied = await migrate(db);
    out(applied.length === 0 ? 'the database is up to date' : `applied ${applied.join(', ')}`);
  } finally {
    await db.close();
  }
}

function configCheck(config: Config, json: boolean): void {
  const rows = describeConfig(config);
  if (json) return out(JSON.stringify({ file: config.file, values: rows }, null, 2));
  const width = Math.max(...rows.map(r => r.key.length));
  for (const r of rows) out(`${r.key.padEnd(width)}  ${r.source.padEnd(7)}  ${JSON.stringify(r.value)}`);
}

async function main(args: string[]): Promise<void> {
  const { positionals, values } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      config: { type: 'string' },
      sample: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      email: { type: 'string' },
      name: { type: 'string' },
      user: { type: 'string' },
      repair: { type: 'boolean', default: false },
      'release-brake': { type: 'string', multiple: true, default: [] },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  // The supervisor's own children; the path behind the word, of the data or of the socket, tells operators whose they are.
  if (positionals[0] === 'serving') return (await import('./app/serving.ts')).runServing();
  if (positionals[0] === 'spicedb')
    return (await import('./supervisor/spicedb-bridge.ts')).runSpicedbBridge(positionals[1] ?? '');
  const verb = values.help ? 'help' : positionals.join(' ');
  // A reader that has seen enough (`config check | head`) is no failure of a command; the service outlives the reader of its log.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    if (verb !== 'serve') process.exit(0);
  });
  const config = (): Config => loadConfig(values.config ?? process.env.BOT_CONFIG ?? null, process.env);
  switch (verb) {
    case '':
    case 'help':
      return out(USAGE);
    case 'version':
      return out(values.json ? JSON.stringify({ version: version(), node: process.version }) : version());
    case 'serve':
      return await serve(config(), values.sample);
    case 'migrate':
      return await runMigrate(config());
    case 'config check':
      return configCheck(config(), values.json);
    case 'admin create':
    case 'admin reset-password':
    case 'admin list': {
      const { adminCommand } = await import('./cli/admin-commands.ts');
      const { email, json, name, user } = values;
      const verb = positionals[1] === 'create' ? 'create' : positionals[1] === 'list' ? 'list' : 'reset-password';
      const progress = (text: string): void => void process.stderr.write(`[plugin-host] ${text}\n`);
      return out(await adminCommand(verb, config(), { email, json, name, user }, progress));
    }
    case 'authz drift': {
      const { authzDrift } = await import('./cli/authz-commands.ts');
      const progress = (text: string): void => void process.stderr.write(`[plugin-host] ${text}\n`);
      return out(await authzDrift(config(), { repair: values.repair, json: values.json }, progress));
    }
    case 'sync once': {
      const { syncOnce } = await import('./cli/sync-commands.ts');
      const { state, text } = await syncOnce(config(), values['release-brake'], values.json, process.stderr);
      out(text);
      process.exitCode = state === 'succeeded' ? 0 : 1;
      return;
    }
    case 'secrets rotate':
    case 'secrets reset': {
      const { resetSecrets, rotateSecrets } = await import('./cli/secrets-commands.ts');
      const progress = (text: string): void => void process.stderr.write(`[plugin-host] ${text}\n`);
      const run = positionals[1] === 'rotate' ? rotateSecrets : resetSecrets;
      return out(await run(config(), values.json, progress));
    }
    case 'doctor': {
      const { doctor, shownChecks } = await import('./cli/doctor.ts');
      const checks = await doctor(config());
      out(values.json ? JSON.stringify({ checks }) : shownChecks(checks));
      // What does not answer must not keep the command.
      return process.exit(checks.some(c => c.state === 'failed') ? 1 : 0);
    }
    default:
      throw new UsageError(`there is no command "${verb}"; see: plugin-host help`);
  }
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`plugin-host: ${messageOf(error)}\n`);
  if (!(error instanceof OperatorError) && error instanceof Error && error.stack !== undefined)
    process.stderr.write(`${error.stack}\n`);
  process.exit(error instanceof UsageError ? 2 : 1);
});
