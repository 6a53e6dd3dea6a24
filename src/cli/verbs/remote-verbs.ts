import type { ReplayFlags } from '../local/replay-command.ts';
import type { ExplainFlags, RelFlags } from '../remote/access-commands.ts';
import type { CallFlags, LogFlags } from '../remote/call-commands.ts';
import type { ExecutionFlags, ListFlags } from '../remote/operator-commands.ts';
import type { InstallFlags } from '../remote/plugin-commands.ts';
import type { Remote, RemoteFlags } from '../remote/remote.ts';
import { addAuthorVerbs } from './author-verbs.ts';
import type { ReadConfig } from './data-verbs.ts';
import { addPeopleVerbs, addPolicyChanges, addTriggerVerbs } from './setting-verbs.ts';
import {
  type Add,
  type Command,
  type Flags,
  group,
  JSON_OPTION,
  out,
  type RemoteRun,
  repeated,
  verb,
} from './verbs.ts';

/** Verbs that ask a running service through its API, with an administration key, from anywhere. */

const LIMIT = ['--limit <number>', 'how many rows, at most 200; 20 without it'] as const;

/** The service that flags or the environment name. */
type RemoteFor = (flags: RemoteFlags & Flags) => Promise<Remote>;

function addPluginVerbs(program: Command, add: Add, remoteFor: RemoteFor): void {
  const plugin = group(program, 'plugin', 'plugins: of their authors, and of a running service');
  addAuthorVerbs(plugin, remoteFor);
  const load = () => import('../remote/plugin-commands.ts');
  add(plugin, 'list', 'list the plugins', async r => (await load()).listPlugins(r));
  add<RemoteFlags & { frontend?: string }>(plugin, 'upload <file>', 'upload a module', async (r, [file = ''], flags) =>
    (await load()).uploadPlugin(r, file, flags.frontend),
  ).option('--frontend <zip>', 'the frontend to deliver with it');
  add<InstallFlags>(
    plugin,
    'install <id> <version>',
    'install an uploaded version, named by wasm_key or version',
    async (r, args, flags) => {
      const [id = '', key = ''] = args;
      return (await load()).installPlugin(r, id, key, flags);
    },
  )
    .option('--config-file <file>', 'JSON file with the configuration of the plugin')
    .option('--accept-permissions', 'accept all permissions the installed version does not have')
    .option('--accept-suggested-access', 'let those call whom the plugin suggests, where nothing is set yet')
    .option('--accept-public', 'accept that triggers become callable without a login')
    .option('--accept-widening', 'accept a first frontend, or triggers without what protected those before them');
  add<InstallFlags>(
    plugin,
    'rollback <id> <version>',
    'go back to a version, named by wasm_key or version',
    async (r, [id = '', key = ''], flags) => (await load()).rollbackPlugin(r, id, key, flags),
  )
    .option('--accept-public', 'accept that triggers become callable without a login')
    .option('--accept-widening', 'accept a first frontend, or triggers without what protected those before them');
  const calls = () => import('../remote/call-commands.ts');
  add<LogFlags>(
    plugin,
    'logs <id>',
    'show executions of a plugin with what they wrote',
    async (r, [id = ''], flags) => {
      await (await calls()).pluginLogs(r, id, flags, out);
      return null;
    },
  )
    .option('-f, --follow', 'go on with new ones until the command is ended')
    .option('--limit <number>', 'how many to begin with, at most 100; 20 without it');
  add(plugin, 'enable <id>', 'enable a plugin', async (r, [id = '']) => (await load()).setPluginEnabled(r, id, true));
  add(plugin, 'versions <id>', 'list the versions of a plugin', async (r, [id = '']) =>
    (await load()).listVersions(r, id),
  );
  add<RemoteFlags & { yes?: boolean }>(plugin, 'uninstall <id>', 'uninstall a plugin', async (r, [id = ''], flags) =>
    (await load()).uninstallPlugin(r, id, flags),
  ).option('--yes', 'without it the command says what goes, and changes nothing');
  add(plugin, 'disable <id>', 'disable a plugin', async (r, [id = '']) =>
    (await load()).setPluginEnabled(r, id, false),
  );
  add(plugin, 'resume <id> [trigger]', 'let a suspended plugin or trigger run again', async (r, [id = '', trigger]) =>
    (await load()).resumePlugin(r, id, trigger),
  );
}

function addQueueVerbs(program: Command, add: Add): void {
  const load = () => import('../remote/operator-commands.ts');
  add(program, 'status', 'show hosts, queues, lags and suspensions on one screen', async r =>
    (await import('../remote/status-command.ts')).statusCommand(r),
  );
  const outbox = group(program, 'outbox', 'changes on their way to the graph store');
  add<ListFlags & { state?: string; key?: string }>(outbox, 'list', 'list entries, the newest first', async (r, _, f) =>
    (await load()).listOutbox(r, f),
  )
    .option('--state <state>', 'only pending, processed, dead, requeued or discarded ones')
    .option('--key <entity>', 'only those that name this entity, as type:id')
    .option(...LIMIT);
  add(outbox, 'show <entry>', 'show an entry', async (r, [id = '']) => (await load()).showOutboxEntry(r, id));
  add(outbox, 'retry <entry>', 'deliver what a dead entry would mean now', async (r, [id = '']) =>
    (await load()).retryOutboxEntry(r, id),
  );
  add(outbox, 'discard <entry>', 'give up a dead entry', async (r, [id = '']) =>
    (await load()).discardOutboxEntry(r, id),
  );
  const executions = group(program, 'executions', 'records of executions');
  add<ExecutionFlags>(executions, 'list <plugin>', 'list executions of a plugin', async (r, [id = ''], f) =>
    (await load()).listExecutions(r, id, f),
  )
    .option(
      '--outcome <outcome>',
      'only those that ended this way: ok, trapped, deadline, refused ...; failed: all but ok and refused',
    )
    .option('--trigger <name>', 'only those of this trigger')
    .option(
      '--since <time>',
      'only those that started after: a length of time like 1h, or a time like 2026-01-31T08:00:00Z',
    )
    .option('--request-id <id>', 'only those of this request')
    .option(...LIMIT);
  add(executions, 'show <plugin> <execution>', 'show an execution with its log', async (r, [id = '', number = '']) =>
    (await load()).showExecution(r, id, number),
  );
  const jobs = group(program, 'jobs', 'background work');
  add(jobs, 'list', 'list the queues', async r => (await load()).listJobs(r));
}

function addTalkVerbs(program: Command, add: Add): void {
  const load = () => import('../remote/operator-commands.ts');
  const messages = group(program, 'messages', 'messages to messengers');
  add<ListFlags & { state?: string; plugin?: string }>(messages, 'list', 'list messages', async (r, _, f) =>
    (await load()).listMessages(r, f),
  )
    .option('--state <state>', 'only queued, sending, sent, failed or uncertain ones')
    .option('--plugin <id>', 'only those of this plugin')
    .option(...LIMIT);
  add(messages, 'retry <message>', 'send a failed message again', async (r, [id = '']) =>
    (await load()).retryMessage(r, id),
  );
  const events = group(program, 'events', 'events of plugins, and who hears them');
  add<ListFlags & { plugin?: string; type?: string }>(
    events,
    'list',
    'list events, the newest first',
    async (r, _, f) => (await load()).listEvents(r, f),
  )
    .option('--plugin <id>', 'only those of this plugin')
    .option('--type <type>', 'only those of this type')
    .option(...LIMIT);
  add<ListFlags>(events, 'subscriptions', 'list the subscriptions', async (r, _, f) =>
    (await load()).listSubscriptions(r, f),
  ).option(...LIMIT);
  add<ListFlags & { state?: string }>(
    events,
    'deliveries <subscription>',
    'list deliveries to a subscription',
    async (r, [id = ''], f) => (await load()).listDeliveries(r, id, f),
  )
    .option('--state <state>', 'only waiting, delivered or dead ones')
    .option(...LIMIT);
  add<RemoteFlags & { event?: string }>(
    events,
    'retry <subscription>',
    'deliver again what is dead',
    async (r, [id = ''], { event }) => (await load()).retryDeliveries(r, id, event),
  ).option('--event <id>', 'this event alone');
  const imports = group(program, 'import', "imports of the university's data");
  const loadImports = () => import('../remote/import-commands.ts');
  add<ListFlags>(imports, 'list', 'list imports, the newest first', async (r, _, f) =>
    (await loadImports()).listImports(r, f),
  ).option(...LIMIT);
  add<ListFlags>(imports, 'show <import>', 'show an import and what was wrong with it', async (r, [id = ''], f) =>
    (await loadImports()).showImport(r, id, f),
  ).option(...LIMIT);
}

function addAccessVerbs(program: Command, add: Add): void {
  const load = () => import('../remote/access-commands.ts');
  const rel = group(program, 'rel', 'relationships of the graph');
  add<RelFlags>(rel, 'list', 'list relationships', async (r, _, f) => (await load()).listRelationships(r, f))
    .option('--object <type:id>', 'only those of this object, or of this type')
    .option('--relation <relation>', 'only this relation')
    .option('--subject <type:id>', 'only those of this subject, or of this type')
    .option(...LIMIT);
  add(rel, 'add <relationship>', 'add one, like faculty:3#dean@user:ext-1', async (r, [text = '']) =>
    (await load()).addRelationship(r, text),
  );
  add(rel, 'remove <relationship>', 'remove one', async (r, [text = '']) => (await load()).removeRelationship(r, text));
  const policy = group(program, 'policy', 'who may call what');
  add(policy, 'list <plugin>', 'list access and policy of each trigger and command', async (r, [id = '']) =>
    (await load()).listPolicies(r, id),
  );
  add(policy, 'check <expression>', 'check an expression; ends with 1 when it is not valid', async (r, [text = '']) =>
    (await load()).checkPolicy(r, text),
  );
  add<ExplainFlags>(policy, 'explain <plugin> <user>', 'why a user may or may not call it', async (r, args, f) => {
    const [plugin = '', user = ''] = args;
    return (await load()).explainAccess(r, plugin, user, f);
  })
    .option('--trigger <name>', 'an HTTP trigger')
    .option('--command <name>', 'a command');
  addPolicyChanges(policy, add);
  const key = group(program, 'key', 'service keys and administration keys');
  const ADMINISTRATION = ['--administration', 'administration keys instead of service keys'] as const;
  add<ListFlags & { administration?: boolean }>(key, 'list', 'list keys', async (r, _, f) =>
    (await load()).listKeys(r, f),
  )
    .option(...ADMINISTRATION)
    .option(...LIMIT);
  add<RemoteFlags & { scope: string[]; expires?: string; allowUnknown?: boolean }>(
    key,
    'create <name>',
    'make a service key; prints it once',
    async (r, [name = ''], f) => (await load()).createKey(r, name, f),
  )
    .option('--scope <plugin:trigger>', 'what it opens; may be repeated', repeated, [])
    .option('--expires <time>', 'when it ends: a length of time like 90d, a time like 2027-01-31T12:00:00Z, or never')
    .option('--allow-unknown', 'make it although a plugin or trigger is not installed');
  add<RemoteFlags & { overlap?: string }>(
    key,
    'rotate <key>',
    'give a service key a new secret; prints it once',
    async (r, [id = ''], f) => (await load()).rotateKey(r, id, f),
  ).option('--overlap <seconds>', 'how long the old secret still counts, also like 1d');
  add<RemoteFlags & { administration?: boolean }>(
    key,
    'revoke <key>',
    'revoke a key at once',
    async (r, [id = ''], f) => (await load()).revokeKey(r, id, f),
  ).option(...ADMINISTRATION);
}

/** Which service: what is said on the command line counts before the environment, and a configuration is the last resort. */
async function addressOf(flags: RemoteFlags & Flags, env: NodeJS.ProcessEnv, config: ReadConfig) {
  if (flags.url !== undefined) return { url: flags.url, from: '--url' };
  const { PLUGIN_HOST_URL: url = '' } = env;
  if (url !== '' && flags.config === undefined) return { url, from: 'PLUGIN_HOST_URL' };
  const { serviceAddress } = await import('../remote/service-address.ts');
  return serviceAddress(await config(flags));
}

/** `plugin call`, which needs no administration key: it calls as the callers of the plugin do. */
function addCallVerb(program: Command, environment: NodeJS.ProcessEnv, config: ReadConfig): void {
  const plugin = program.commands.find(c => c.name() === 'plugin') ?? program;
  verb<CallFlags & RemoteFlags & Flags>(plugin, 'call <id> <path>', 'call an HTTP trigger', async (flags, args) => {
    const [id = '', path = ''] = args;
    const { url } = await addressOf(flags, environment, config);
    const answer = await (await import('../remote/call-commands.ts')).callPlugin(url, id, path, flags);
    const { exitCode, text } = typeof answer === 'string' ? { exitCode: 0, text: answer } : answer;
    out(text);
    process.exitCode = exitCode;
  })
    .option('--method <method>', 'GET without it, POST with --data')
    .option('--data <text>', 'the body, as JSON')
    .option('--header <header>', 'a header like "Name: value"; may be repeated', repeated, [])
    .option('--bearer <token>', 'a user token or service key')
    .option('--url <address>', 'address of the service; else PLUGIN_HOST_URL, or that of the configuration')
    .option(...JSON_OPTION);
}

/** `plugin replay`, which asks a service only where the recording is not in a file. */
function addReplayVerb(program: Command, remoteFor: RemoteFor): void {
  const plugin = program.commands.find(c => c.name() === 'plugin') ?? program;
  verb<ReplayFlags & Flags>(plugin, 'replay <execution>', 'run a recorded execution again', async (flags, args) => {
    const [execution = '', folder] = args;
    const answer = await (await import('../local/replay-command.ts')).replayCommand(execution, folder, flags, () =>
      remoteFor(flags),
    );
    const { exitCode, text } = typeof answer === 'string' ? { exitCode: 0, text: answer } : answer;
    out(text);
    process.exitCode = exitCode;
  })
    .argument('[folder]', 'folder of the plugin, which is built; the present one without it')
    .option('--module <file>', 'a built module, instead of the folder')
    .option('--plugin <id>', 'the recorded module as the service has it, instead of the folder')
    .option('--set <field>', 'a configuration field that the recording hides, like api_key=secret', repeated, [])
    .option('--save <file>', 'where to keep the recording, to name it instead of the number')
    .option('--url <address>', 'address of the service; else PLUGIN_HOST_URL, or that of the configuration')
    .option('--token <key>', 'an administration key; else PLUGIN_HOST_TOKEN')
    .option(...JSON_OPTION);
}

/** @param environment with `PLUGIN_HOST_URL` and `PLUGIN_HOST_TOKEN`, for what the options do not say */
export function addRemoteVerbs(program: Command, environment: NodeJS.ProcessEnv, config: ReadConfig): void {
  const remoteFor: RemoteFor = async flags => {
    const { remoteOf } = await import('../remote/remote.ts');
    const address = await addressOf(flags, environment, config);
    return remoteOf(address, flags.token ?? environment.PLUGIN_HOST_TOKEN, flags.json === true);
  };
  const add: Add = <F extends RemoteFlags>(parent: Command, name: string, about: string, run: RemoteRun<F>) =>
    verb<F & Flags>(parent, name, about, async (flags, args) => {
      const answer = await run(await remoteFor(flags), args, flags);
      if (answer === null) return;
      const { exitCode, text } = typeof answer === 'string' ? { exitCode: 0, text: answer } : answer;
      out(text);
      process.exitCode = exitCode;
    })
      .option(
        '--url <address>',
        'address of the service; else that of --config, of PLUGIN_HOST_URL, or of the configuration',
      )
      .option('--token <key>', 'an administration key; else PLUGIN_HOST_TOKEN')
      .option(...JSON_OPTION);
  addQueueVerbs(program, add);
  addTalkVerbs(program, add);
  addAccessVerbs(program, add);
  addTriggerVerbs(program, add);
  addPeopleVerbs(program, add, LIMIT);
  addPluginVerbs(program, add, remoteFor);
  addCallVerb(program, environment, config);
  addReplayVerb(program, remoteFor);
}
