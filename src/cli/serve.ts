import { type Config, dataPath, publicUrlProblem } from '../config/load.ts';
import { makeAnnouncer } from '../supervisor/announce.ts';
import { buildSample } from '../supervisor/build-sample.ts';
import { checkDataDirectory, checkPackages } from '../supervisor/start-checks.ts';
import { Supervisor } from '../supervisor/supervisor.ts';
import { SystemdNotifier } from '../supervisor/systemd-notifier.ts';

/** Signals that come together are one: npm passes on what the terminal or systemd has sent to the service as well. */
const SAME_SIGNAL_MS = 1000;

/**
 * `serve`: starts the service below this process, which runs until a signal stops it.
 *
 * @param readConfig reads the configuration: now, and at each reload
 * @param sample whether the sample plugin is built and installed
 * @param environment what the service's processes are started with
 * @throws OperatorError when it cannot start
 */
export async function serve(readConfig: () => Config, sample: boolean, environment: NodeJS.ProcessEnv): Promise<void> {
  const config = readConfig();
  checkPackages(config);
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
  checkDataDirectory(dataPath(config), announcer.warn);
  const samplePath = sample ? await buildSample(dataPath(config, 'sample'), progress) : null;
  const problem = publicUrlProblem(config);
  if (problem !== null) announcer.warn(problem);
  const supervisor = new Supervisor({
    config,
    readAgain: readConfig,
    samplePath,
    environment,
    progress,
    warn,
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
    progress(`${signal}: stopping`);
    systemd.stopping();
    supervisor.stop().then(() => {
      progress('stopped');
      systemd.close();
      process.exit(0);
    });
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop(signal));
  try {
    await supervisor.start();
  } catch (error) {
    await supervisor.stop();
    systemd.close();
    if (stoppedAt === null) throw error;
  }
}
