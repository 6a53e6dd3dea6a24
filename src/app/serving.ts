import fs from 'node:fs';
import { messageOf, OperatorError } from '../base/errors.ts';
import { makeLog, standardOutput } from '../base/log.ts';
import { type Config, loadConfig } from '../config/load.ts';
import { durationMs } from '../config/values.ts';
import { isUnavailable } from '../db/database.ts';
import { installSample } from '../plugins/sample.ts';
import type { GoMessage, ServingMessage, SupervisorMessage } from '../supervisor/serving/serving-messages.ts';
import { type Service, startService } from './service.ts';
import { LinkedSiblings } from './siblings.ts';

const GRACE_MS = 10_000;

/** Messages kept while another program takes the supervisor's place; null: none are kept. */
let kept: ServingMessage[] | null = null;

function tell(message: ServingMessage): void {
  if (kept !== null) return void kept.push(message);
  // The supervisor may have ended; then this process ends as well, in its own time.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

/** Whether a message was about the supervisor itself, and is done. */
function hearOfSupervisor({ kind }: SupervisorMessage): boolean {
  if (kind === 'supervisor_changes') {
    tell({ kind: 'quiet' });
    kept ??= [];
  } else if (kind === 'supervisor_changed') {
    const said = kept ?? [];
    kept = null;
    for (const message of said) tell(message);
  }
  return kind === 'supervisor_changes' || kind === 'supervisor_changed';
}

/** What went wrong at start, in one line that says what to do. */
function startFailure(error: unknown, config: Config): string {
  if (isUnavailable(error)) {
    const url = config.values['database.url'];
    const where = URL.canParse(url) ? new URL(url).host : 'the configured address';
    return `the database at ${where} does not answer: ${messageOf(error)}; start it or correct database.url (BOT_DATABASE_URL)`;
  }
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (['28P01', '28000', '3D000'].includes(code))
    return `the database refuses the connection: ${messageOf(error)}; correct database.url (BOT_DATABASE_URL)`;
  return messageOf(error);
}

/** What the supervisor said before the service was there to hear it. */
type Inbox = {
  early: SupervisorMessage[];
  hear(message: SupervisorMessage): void;
  /** Called when the supervisor has ended. */
  left(): void;
};

/**
 * Stands by, everything loaded, until the supervisor says go; ends when the supervisor does.
 *
 * @param journal the variable `JOURNAL_STREAM`
 */
export function runServing(journal: string | undefined): void {
  const early: SupervisorMessage[] = [];
  // Files are made for this account alone: those of users, modules, received messages.
  process.umask(0o077);
  // Until it serves there is nothing to end in order.
  const inbox: Inbox = { early, hear: message => void early.push(message), left: () => process.exit(0) };
  process.on('message', (message: SupervisorMessage) => {
    if (hearOfSupervisor(message)) return;
    if (message.kind !== 'go') return inbox.hear(message);
    void serve(message, inbox, journal);
  });
  process.on('disconnect', () => inbox.left());
  // The signals of a terminal are the supervisor's to act on.
  process.on('SIGINT', () => {});
}

function siblingsOf({ hostId, processes, slots }: GoMessage): LinkedSiblings {
  const siblings = new LinkedSiblings(processes, hostId, tell);
  siblings.slots.hear({ kind: 'slots_owned', ...slots });
  return siblings;
}

/** Does what the supervisor says. */
function listenTo(inbox: Inbox, service: Service, siblings: LinkedSiblings, handOver: () => void): void {
  inbox.hear = message => {
    switch (message.kind) {
      case 'go':
      case 'supervisor_changes':
      case 'supervisor_changed':
        return;
      case 'graph':
        return service.useEmbeddedGraph(message.endpoint);
      case 'ask_metrics': {
        const { number } = message;
        return void service.metrics().then(metrics => tell({ kind: 'metrics', number, metrics }));
      }
      case 'ask_alive':
        return tell({ kind: 'alive' });
      case 'others':
        siblings.others = message.pids;
        return service.memory.useOthers(message.pids);
      case 'ask_heard': {
        const { by, number } = message;
        return void service.heard().then(came => came && tell({ kind: 'heard', by, number }));
      }
      case 'heard':
        return siblings.answer(message.number, true);
      case 'config':
        return siblings.answer(message.number, message.pending);
      case 'strike':
      case 'callers_well':
      case 'strikes_forgotten':
      case 'trigger_resumed':
        return service.hearStrike(message);
      case 'take_over':
        return service.takeOver();
      case 'hand_over':
        return handOver();
      default:
        // A supervisor of a later release may say what this one does not know.
        if (message.kind.startsWith('slots_')) siblings.slots.hear(message);
    }
  };
  for (const message of inbox.early.splice(0)) inbox.hear(message);
}

/** The serving process: front end and plugin threads. */
async function serve(options: GoMessage, inbox: Inbox, journal: string | undefined): Promise<void> {
  const config = { ...loadConfig(null, options.env), ...options.origin };
  const log = makeLog(config.values['log.level'], standardOutput(journal), config.values['log.format']);
  const siblings = siblingsOf(options);
  let stopping = false;
  try {
    const service = await startService({
      config,
      log,
      setupToken: config.values['admin.setup_token'],
      pages: options.pages,
      noteFile: options.noteFile,
      suspects: options.suspects,
      siblings,
      replaces: options.replaces === true,
      async prepare(installer, registry) {
        if (options.sampleModule === null) return;
        const bytes = fs.readFileSync(options.sampleModule);
        if (await installSample(installer, registry, bytes)) log.info('sample plugin installed');
      },
      graphInUse: endpoint => tell({ kind: 'graph_in_use', endpoint }),
    });
    const stop = (why: string, delayMs = 0): void => {
      if (stopping) return;
      stopping = true;
      log.info({ why }, 'stopping');
      service.stop(GRACE_MS, delayMs).then(
        () => process.exit(0),
        (error: unknown) => {
          log.error({ error: messageOf(error) }, 'stopping failed');
          process.exit(1);
        },
      );
    };
    const handOver = async (): Promise<void> => {
      await service.handOver().catch((error: unknown) => log.error({ error: messageOf(error) }, 'handing over failed'));
      stop('another process serves');
    };
    inbox.left = () => stop('the supervisor is gone');
    process.on('SIGTERM', () => stop('SIGTERM', durationMs(config.values['serving.drain_delay'])));
    listenTo(inbox, service, siblings, () => void handOver());
    const isGradual = durationMs(config.values['serving.take_over']) > 0;
    if (options.replaces === true && isGradual) await service.settled();
    log.info({ port: service.server.port, plugins: service.registry.size }, 'ready');
    tell({ kind: 'listening', port: service.server.port, setupMode: await service.inSetupMode() });
  } catch (error) {
    const message = startFailure(error, config);
    const isExplained = error instanceof OperatorError || message !== messageOf(error);
    const stack = error instanceof Error && !isExplained ? error.stack : undefined;
    log.fatal({ error: message, stack }, 'the service could not start');
    tell({ kind: 'failed', message });
    setTimeout(() => process.exit(1), 50);
  }
}
