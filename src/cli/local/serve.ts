import fs from 'node:fs';
import path from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { type Config, configFromEnv, dataPath, publicUrlProblem } from '../../config/load.ts';
import { durationMs } from '../../config/values.ts';
import { makeAnnouncer } from '../../supervisor/announce.ts';
import { buildPages } from '../../supervisor/build-pages.ts';
import { buildSample } from '../../supervisor/build-sample.ts';
import { raiseStartPriority } from '../../supervisor/children/start-priority.ts';
import { SystemdNotifier } from '../../supervisor/children/systemd-notifier.ts';
import { makeTrustedFolder } from '../../supervisor/children/trusted-folder.ts';
import type { Program } from '../../supervisor/handover/program.ts';
import {
  readTakeover,
  TAKEOVER_VARIABLE,
  type TakeoverState,
  takeoverState,
} from '../../supervisor/handover/takeover-state.ts';
import { checkDataDirectory, checkPackages } from '../../supervisor/start-checks.ts';
import { Supervisor } from '../../supervisor/supervisor.ts';

/** Signals that come together are one: npm passes on what the terminal or systemd has sent to the service as well. */
const SAME_SIGNAL_MS = 1000;

export type ServeOptions = {
  /** Reads the configuration: now, and at each reload. @param named the file that a reload names, which must be the same */
  readConfig(named?: string | null): Config;
  /** Whether the sample plugin is built and installed. */
  sample: boolean;
  /** What the service's processes are started with. */
  environment: NodeJS.ProcessEnv;
  program: Program;
};

/**
 * Whether this release can take over the state that another one writes to standard input. What takes long before it can, is done
 * here: while it takes over, nothing hears the serving processes.
 *
 * @throws Error why it cannot
 */
async function checkTakeover(readConfig: () => Config): Promise<void> {
  const config = readConfig();
  checkPackages(config);
  await buildPages(pagesOf(makeBuilt(config)), () => {});
  const state = takeoverState.parse(JSON.parse(await readText(process.stdin)));
  for (const env of [state.given, state.effective]) configFromEnv(env);
}

/**
 * `serve`: starts the service below this process, which runs until a signal stops it.
 *
 * @throws OperatorError when it cannot start
 */
export async function serve(options: ServeOptions): Promise<void> {
  const { [TAKEOVER_VARIABLE]: takeover, ...environment } = options.environment;
  if (takeover === 'check') return await checkTakeover(options.readConfig);
  const ownEntry = fs.realpathSync(options.program.entry);
  if (takeover === undefined) return await run({ ...options, environment, ownEntry }, null);
  raiseStartPriority(process.pid);
  const taken = readTakeover(Number(takeover));
  await run({ ...options, environment, ownEntry, program: { ...options.program, entry: taken.entry } }, taken);
}

/** The folder of what is built for this service; made when absent. */
function makeBuilt(config: Config): string {
  const built = dataPath(config, 'built');
  makeTrustedFolder(built);
  return built;
}

const pagesOf = (built: string): string => path.join(built, 'pages');

/** @param taken what the program before has handed on; null at a start */
async function run(options: ServeOptions & { ownEntry: string }, taken: TakeoverState | null): Promise<void> {
  const { environment, ownEntry, program, readConfig, sample } = options;
  const config = taken === null ? readConfig() : configFromEnv(taken.given, taken.origins?.given);
  const announcer = makeAnnouncer(config, sample, process.stdout, environment.JOURNAL_STREAM);
  const systemd = new SystemdNotifier(environment, announcer.warn);
  const progress = (text: string): void => {
    announcer.progress(text);
    systemd.status(text);
  };
  const warn = (text: string): void => {
    announcer.warn(text);
    systemd.status(text);
  };
  if (taken === null) checkPackages(config);
  const lock = taken === null ? checkDataDirectory(dataPath(config), announcer.warn) : taken.lock;
  const built = makeBuilt(config);
  const samplePath = sample && taken === null ? await buildSample(path.join(built, 'sample'), progress) : null;
  const pages = await buildPages(pagesOf(built), progress);
  const problem = publicUrlProblem(config);
  if (problem !== null && taken === null) announcer.warn(problem);
  const supervisor = new Supervisor({
    config,
    readAgain: readConfig,
    program,
    ownEntry,
    lock,
    taken,
    samplePath,
    pages,
    environment,
    progress,
    warn,
    flush: announcer.flush,
    ready(port, token, first) {
      if (first) announcer.ready(port, token);
      else progress(`ready again on port ${port}`);
      systemd.ready(`ready on port ${port}`, () => supervisor.isBeating);
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
    const delay = config.values['serving.drain_delay'];
    const first = durationMs(delay) > 0 ? `draining for ${delay}, then ` : '';
    progress(`${signal}: ${first}stopping`);
    systemd.stopping();
    supervisor.stop().then(() => {
      progress('stopped');
      systemd.close();
      process.exit(0);
    });
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop(signal));
  // `bin/plugin-host.js` has kept a signal that came before, and passes it on in the next turn: what runs is taken over by then.
  if (taken !== null) return await supervisor.resume(taken);
  try {
    await supervisor.start();
  } catch (error) {
    await supervisor.stop();
    systemd.close();
    if (stoppedAt === null) throw error;
  }
}
