import path from 'node:path';
import type { ExecutionOutcome } from '../abi/execution-outcome.ts';
import { messageOf } from '../base/errors.ts';
import type { HostCall } from '../host/host-functions.ts';
import type { Manifest } from '../plugins/manifest.ts';
import { endBuilds } from '../projects/build-project.ts';
import { type Language, type Project, readProject } from '../projects/project.ts';
import {
  type AnsweredRequest,
  assertPortIsFree,
  DEV_PORT,
  DevPrincipals,
  type Front,
  startFront,
} from './dev-front.ts';
import { DevMessages, type ReceivedMessage } from './dev-messages.ts';
import { startDevService } from './dev-service.ts';
import { DevUsers } from './dev-users.ts';
import { writeKit } from './new-project.ts';
import { runningFrames } from './running-frames.ts';
import { Swapper } from './swapper.ts';

/** `plugin dev`: runs a plugin on this machine and swaps it at each change of its files. */

export type Dev = {
  /** Where the plugin answers. */
  base: string;
  stop(): Promise<void>;
};

const LEVELS = ['debug', 'info', 'warn', 'error'];

/** What an execution said and how it failed, for the terminal. */
function executionLines(call: HostCall, outcome: ExecutionOutcome): string[] {
  const logs = outcome.log.map(({ level, text }) => `  ${LEVELS[level] ?? 'info'}: ${text.replaceAll('\n', '\n    ')}`);
  if (outcome.kind === 'ok') return logs;
  const failure = outcome.failure.replaceAll('\n', '\n    ');
  const isNamed = outcome.log.some(({ text }) => text.includes('was denied: it needs the requirement'));
  const help = !isNamed && /\bpermission denied$/m.test(failure) ? [`  ${DENIED_HELP}`] : [];
  return [...logs, `  ${call.trigger}: ${outcome.kind}${failure === '' ? '' : `: ${failure}`}`, ...help];
}

/** What an author does about a host call that is denied. */
const DENIED_HELP =
  'this host call needs a requirement in the declaration of the plugin: for the key-value store, a database, outgoing HTTP, notifications, events, calls of a plugin, or files';

const fileOf = ({ base64, mime_type, name }: { name: string; mime_type: string; base64: string }) => ({
  name,
  mimeType: mime_type,
  bytes: new Uint8Array(Buffer.from(base64, 'base64')),
});

/** An address of an upload or download opens it to everyone who reads it. */
const withoutSignature = (url: string): string => url.replace(/([?&]signature=)[^&]+/, '$1...');

/** What a caller who was not let in lacks, by the status. */
const CALLER_HELP: Readonly<Record<number, string>> = {
  401: "the trigger asks for a caller: -H 'X-Dev-Principal: user:7', or service:1 where its access lets service keys in",
  403: 'users have the roles, groups and attributes of "dev": {"users": {...}} in plugin-host.json; a service key is let in only where the access of the trigger says so',
  503: 'a trigger that failed three times in a row is suspended for a while: the next change of the plugin ends that',
};

/** A request that was answered, for the terminal. */
function answeredLines({ isRefusal, method, ms, status, url }: AnsweredRequest): string[] {
  const { [status]: help } = CALLER_HELP;
  const line = `${method} ${withoutSignature(url)} ${status} ${ms.toFixed(1)} ms`;
  return help === undefined || !isRefusal || !url.startsWith('/api/triggers/') ? [line] : [line, `  ${help}`];
}

/** A message that was sent, for the terminal. */
const messageLines = ({ file, text, to }: ReceivedMessage): string[] => [
  `  message to ${to}: ${text.replaceAll('\n', '\n    ')}`,
  ...(file === null ? [] : [`    ${file.name} (${file.mimeType}, ${file.bytes.length} bytes)`]),
];

/** What runs for long does not come to its end: where it is, for an endless loop. */
async function sayWhereItRuns(language: Language, ms: number, say: (text: string) => void): Promise<void> {
  // The kit for TypeScript says at the deadline where it is.
  if (language === 'ts') return;
  for (const [first = '', ...callers] of await runningFrames()) {
    say(`  after ${(ms / 1000).toFixed(1)} s it is still ${first}`);
    for (const caller of callers) say(`    ${caller}`);
  }
}

/** Commands that work, for each trigger. */
function callLines({ id, triggers }: Manifest, base: string, userFor: (policy: string) => DevUser): string[] {
  const { port } = new URL(base);
  const where = port === String(DEV_PORT) ? '' : ` --port ${port}`;
  return triggers.flatMap(t => {
    if (t.type !== 'http') return [`  plugin-host plugin message "/${t.name}" --as user:7${where}`];
    const method = t.methods[0] === 'GET' ? '' : `-X ${t.methods[0]} `;
    const { policy = '', service_keys: keys = false, users = false } = t.access ?? {};
    const user = userFor(policy);
    const who = users || keys ? `-H 'X-Dev-Principal: ${users ? `user:${user.id}` : 'service:1'}' ` : '';
    const lacking = users && user.lacks !== '' ? `   # no user of plugin-host.json has ${user.lacks}` : '';
    return [`  curl ${method}${who}${base}/api/triggers/http/${id}${t.path.replace(/:([^/]+)/g, '$1')}${lacking}`];
  });
}

/** The words of a policy after the name of a function. */
const wordsOf = (policy: string, name: string): string[] =>
  [...policy.matchAll(new RegExp(`\\b${name}\\(([^)]*)\\)`, 'g'))].flatMap(([, list = '']) =>
    [...list.matchAll(/["']([^"']+)["']/g)].map(([, word = '']) => word),
  );

/** A user to call as, and in words what a policy asks for that no user of `plugin-host.json` has. */
type DevUser = { id: number; lacks: string };

/** A user of `plugin-host.json` who has the roles that a policy asks for; 7 where there is none, or it forbids some. */
function userWithRole(users: Project['devUsers'], policy: string): DevUser {
  if (policy.includes('!')) return { id: 7, lacks: '' };
  const [all, any] = [wordsOf(policy, 'has_role'), wordsOf(policy, 'has_any_role')];
  if (all.length + any.length === 0) return { id: 7, lacks: '' };
  const fits = (roles: readonly string[]): boolean =>
    all.every(role => roles.includes(role)) && (any.length === 0 || any.some(role => roles.includes(role)));
  const [id] = [...users].find(([, user]) => fits(user.roles)) ?? [];
  if (id !== undefined) return { id, lacks: '' };
  // Of a policy with alternatives each may be enough.
  const asked = [...all.map(role => `the role ${role}`), ...(any.length === 0 ? [] : [`one of ${any.join(', ')}`])];
  return { id: 7, lacks: policy.includes('||') ? '' : asked.join(' and ') };
}

/** Shows how triggers are called that were not there before. */
class ShownCalls {
  readonly #say: (text: string) => void;
  readonly #users: Project['devUsers'];
  #base: string | null = null;
  #shown: string[] = [];

  constructor(say: (text: string) => void, users: Project['devUsers']) {
    this.#say = say;
    this.#users = users;
  }

  /** From now on the author knows the address. */
  begin(base: string, manifest: Manifest | null): void {
    this.#base = base;
    this.show(manifest);
  }

  show(manifest: Manifest | null): void {
    if (this.#base === null || manifest === null) return;
    const lines = callLines(manifest, this.#base, policy => userWithRole(this.#users, policy));
    for (const line of lines) if (!this.#shown.includes(line)) this.#say(line);
    this.#shown = lines;
  }
}

/**
 * @param port where it listens, on loopback alone
 * @param say writes for the author
 * @throws OperatorError when it cannot start
 */
export async function startDev(folder: string, port: number, say: (text: string) => void): Promise<Dev> {
  const project = readProject(folder);
  await assertPortIsFree(port);
  const users = new DevUsers(project.devUsers);
  writeKit(project.language, project.root);
  const sayAll = (lines: readonly string[]): void => {
    for (const line of lines) say(line);
  };
  const messages = new DevMessages(message => sayAll(messageLines(message)));
  const settings = await messages.messenger.start();
  let base: string | null = null;
  const service = await startDevService({
    settings,
    base: () => base,
    directory: path.join(project.root, '.plugin-host'),
    config: () => readProject(project.root).devConfig,
    language: project.language,
    progress: text => say(`[dev] ${text}`),
    executed: (call, outcome) => sayAll(executionLines(call, outcome)),
  });
  const calls = new ShownCalls(say, project.devUsers);
  const swapper = new Swapper(project, service, say, () => calls.show(swapper.manifest));
  const principals = new DevPrincipals(
    service.db,
    service.prefixes,
    () => swapper.manifest?.id ?? '',
    async id => {
      await users.give(service.service, service.db, id);
      await messages.link(service.db, id);
    },
  );
  let front: Front;
  try {
    front = await startFront({
      port,
      servicePort: service.port,
      principals,
      page: () =>
        project.frontend === null || swapper.manifest === null ? '/' : `/plugins/${swapper.manifest.id}/app/`,
      message: ({ as, file, text }) =>
        messages.send(
          service,
          { as, text, file: file === null ? null : fileOf(file) },
          async id => void (await principals.bearerOf(`user:${id}`)),
        ),
      late: ms => void sayWhereItRuns(project.language, ms, say).catch(error => say(messageOf(error))),
      answered: request => sayAll(answeredLines(request)),
    });
  } catch (error) {
    messages.messenger.close();
    await service.stop();
    throw error;
  }
  base = `http://127.0.0.1:${front.port}`;
  await swapper.swap();
  await swapper.watch();
  say(`listening on ${base}; ${project.root} is rebuilt at each change`);
  calls.begin(base, swapper.manifest);
  if (project.frontend !== null) say(`  open ${base}/dev/as/user:7: its pages, as the user 7`);
  return {
    base,
    async stop() {
      await swapper.close();
      front.close();
      messages.messenger.close();
      await service.stop();
      await endBuilds();
    },
  };
}
