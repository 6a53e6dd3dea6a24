import { performance } from 'node:perf_hooks';
import type { ExecutionOutcome } from '../abi/execution-outcome.ts';
import { ENTRY } from '../abi/shared-layout.ts';
import type { CommandAccess, CommandDecision } from '../authz/command-access.ts';
import { callerKey } from '../base/caller-key.ts';
import { messageOf, ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import type { Execution } from '../execution/execute.ts';
import { type FileDescription, parseDescription } from '../files/file-kind.ts';
import type { FileRecord } from '../files/file-records.ts';
import type { Files } from '../files/files.ts';
import { HostCall, type MessageScope } from '../host/host-functions.ts';
import { findAccountUser, linkAccount, normalizeCode, unlinkAccount } from '../identity/messenger-accounts.ts';
import { ANSWERS, type HelpLine } from '../messaging/answers.ts';
import type { Channel, ChannelName, IncomingFile, IncomingMessage, Language } from '../messaging/channel.ts';
import { appendMessages, type Message } from '../messaging/outgoing.ts';
import { MessengerAway, type StoredUpdate } from '../messaging/updates.ts';
import { wholeAlbum } from '../messaging/whole-album.ts';
import { type Command, findCommand, listCommands } from '../plugins/commands.ts';
import type { InstalledPlugin, PluginRegistry } from '../plugins/registry.ts';
import type { ExecutionRecords } from '../records/execution-records.ts';
import type { Quarantine } from '../records/quarantine.ts';
import type { Recording } from '../records/recording.ts';
import { messageEvent } from './message-event.ts';
import { appendCall, appendCommandRefusal, recordingOf } from './record.ts';

export type MessageParts = {
  channels: ReadonlyMap<ChannelName, Channel>;
  registry: PluginRegistry;
  quarantine: Quarantine;
  records: ExecutionRecords;
  access: CommandAccess;
  files: Files;
  execute(execution: Execution<HostCall>): void;
  timeoutMs: number;
  onError(error: unknown, what: string): void;
};

/** One message and its state through all steps. */
type Line = {
  parts: MessageParts;
  client: Queryable;
  channel: Channel;
  message: IncomingMessage;
  scope: MessageScope;
  requestId: string;
  userId: number | null;
  language: Language;
};

type Asked = { word: string; args: string[] };

/** The outcome of a message as one word, and the answer of the host; null: only the plugin's replies are sent. */
type Handled = { outcome: string; answer: string | null; pluginId: string | null };

const EMPTY = new Uint8Array(0);
const COMMANDS_ASKED_AT_ONCE = 16;
/** Other chats wait for a place meanwhile. */
const OWN_NAME_MS = 3000;

/**
 * Handles one message to a messenger trigger, from top to bottom: who writes, which command, may they run it
 * (docs/authorization.md "Commands"), take the files, execute, queue the replies. All writes are part of the caller's
 * transaction.
 *
 * @returns the outcome as one word
 * @throws Error when it must be tried again
 */
export async function handleMessage(parts: MessageParts, client: Queryable, update: StoredUpdate): Promise<string> {
  // The message is not parsed here, because parsing it may be what fails each time.
  if (update.attempts > LIMITS.updateAttemptsMax) return await giveUp(client, update);
  const channel = parts.channels.get(update.channel);
  const given = channel?.parse(JSON.parse(update.payload));
  if (channel === undefined || given == null) return 'ignored';
  const message = given.album === null ? given : await wholeAlbum(client, channel, update, given);
  if (message === null) return 'part_of_album';
  // A command for another bot is none here; while our name is not known, it waits.
  if (message.addressee !== null && !(await isOurs(channel, message.addressee))) return 'ignored';
  const user = await findAccountUser(client, update.channel, message.accountId);
  const key = keyOf(update);
  const line: Line = {
    parts,
    client,
    channel,
    message,
    scope: { chat: `${update.channel}:${message.chatId}`, key, replies: [] },
    requestId: key.padEnd(8, '-'),
    userId: user?.userId ?? null,
    language: user?.locale ?? message.language ?? 'ru',
  };
  const handled = await handle(line);
  await queueAnswers(line, handled);
  return handled.outcome;
}

/** @throws MessengerAway while our name is not known */
async function isOurs(channel: Channel, addressee: string): Promise<boolean> {
  try {
    return await channel.isUs(addressee, AbortSignal.timeout(OWN_NAME_MS));
  } catch (error) {
    throw new MessengerAway(`${channel.name} does not say what we are called: ${messageOf(error)}`, { cause: error });
  }
}

const keyOf = (update: StoredUpdate): string => `update-${update.id}`;

/**
 * Answers a message that failed, or ended its host, too often. Uses both languages, because the message is not parsed.
 */
async function giveUp(client: Queryable, update: StoredUpdate): Promise<string> {
  await appendMessages(client, [
    {
      channel: update.channel,
      chatId: update.chatId,
      pluginId: null,
      source: 'host',
      userId: null,
      message: { text: `${ANSWERS.ru.busy}\n${ANSWERS.en.busy}`, files: [] },
      requestId: keyOf(update).padEnd(8, '-'),
      onceKey: `${keyOf(update)} host 0`,
    },
  ]);
  return 'given_up';
}

/** An answer of the host itself. */
const told = (outcome: string, answer: string): Handled => ({ outcome, answer, pluginId: null });

async function handle(line: Line): Promise<Handled> {
  const { channel, language, message, parts } = line;
  const say = ANSWERS[language];
  const asked = commandIn(message, channel.plainWords);
  if (asked === null)
    return message.isPrivate
      ? told('no_command', say.notACommand)
      : { outcome: 'ignored', answer: null, pluginId: null };
  const own = await handleOwn(line, asked);
  if (own !== null) return own;
  const found = findCommand(parts.registry, asked.word);
  if (found.length === 0) return told('unknown_command', say.unknown(asked.word));
  const [command] = found;
  if (command === undefined || found.length > 1)
    return told(
      'several_commands',
      say.several(
        asked.word,
        found.map(c => c.qualified),
      ),
    );
  return await runCommand(line, command, asked);
}

/**
 * The command of a message: `/word args`, or in private chats of messengers without slash commands the first word. Null
 * for none.
 */
function commandIn(m: IncomingMessage, plainWords: boolean): Asked | null {
  const [first = '', ...args] = m.text.trim().split(/\s+/);
  const word = first.startsWith('/') ? first.slice(1) : plainWords && m.isPrivate ? first : '';
  return word === '' ? null : { word: shownWord(word), args };
}

/** The word as it is repeated to the user: without lone surrogates and control characters. */
const shownWord = (word: string): string =>
  word
    .slice(0, 150)
    .toWellFormed()
    .replace(/[\u0000-\u001f\u007f-\u009f]/g, '');

/** Handles the host's own commands. Null when it is another command. */
async function handleOwn(line: Line, { args, word }: Asked): Promise<Handled | null> {
  const { channel, client, language, message, userId } = line;
  const say = ANSWERS[language];
  const [code] = args;
  switch (word.toLowerCase()) {
    case 'start':
      if (code !== undefined && normalizeCode(code) !== null) return await link(line, code);
      return told('start', say.welcome);
    case 'link':
      return code === undefined ? told('link_asked', say.howToLink) : await link(line, code);
    case 'unlink': {
      const unlinked = userId !== null && (await unlinkAccount(client, channel.name, message.accountId));
      return told('unlinked', unlinked ? say.unlinked : say.notLinked);
    }
    case 'help':
      return told('help', say.help(await helpFor(line), userId !== null));
    default:
      return null;
  }
}

async function link({ channel, client, language, message }: Line, text: string): Promise<Handled> {
  const say = ANSWERS[language];
  if (!message.isPrivate) return told('link_refused', say.linkPrivately);
  const account = { channel: channel.name, accountId: message.accountId, chatId: message.chatId };
  const linked = await linkAccount(client, account, normalizeCode(text) ?? '');
  if (linked.kind === 'linked') return told('linked', say.linked);
  return told('link_refused', linked.kind === 'wrong' ? say.wrongCode : say.tooManyCodes);
}

/** The commands this user may run. */
async function helpFor({ parts, userId }: Line): Promise<HelpLine[]> {
  const lines: HelpLine[] = [];
  const all = listCommands(parts.registry);
  for (let k = 0; k < all.length; k += COMMANDS_ASKED_AT_ONCE) {
    const some = all.slice(k, k + COMMANDS_ASKED_AT_ONCE);
    const decisions = await Promise.all(some.map(c => parts.access.decide(userId, c.plugin.id, c.trigger.name)));
    for (const [n, c] of some.entries())
      if (decisions[n]?.allowed === true) lines.push({ command: c.shown, description: c.trigger.description });
  }
  return lines;
}

async function runCommand(line: Line, command: Command, asked: Asked): Promise<Handled> {
  const { language, parts, requestId, scope, userId } = line;
  const { plugin, trigger } = command;
  const say = ANSWERS[language];
  const deadline = performance.now() + parts.timeoutMs;
  const caller = callerOf(line);
  const callAt = (until: number, recording: Recording | null = null): HostCall =>
    new HostCall({
      plugin,
      requestId,
      trigger: trigger.name,
      kind: 'messenger',
      principal: userId === null ? null : { kind: 'user', userId },
      caller,
      deadline: until,
      callers: [],
      message: scope,
      recording,
    });
  const decision = await parts.access.decide(userId, plugin.id, trigger.name);
  if (!decision.allowed) {
    appendCommandRefusal(parts.records, callAt(deadline), refusalText(decision), decided(decision), Date.now());
    return told(`refused: ${decision.reason}`, refusalAnswer(line, decision, asked.word));
  }
  if (parts.quarantine.find(plugin, trigger.name, caller, Date.now()) !== undefined)
    return told('quarantined', say.disabled(asked.word));
  const given = line.message.files.length;
  if (plugin.permissions.has('file') && given > LIMITS.messageFilesMax)
    return told('too_many_files', say.tooManyFiles(given, LIMITS.messageFilesMax));
  let files: FileRecord[];
  try {
    files = plugin.permissions.has('file') ? await takeFiles(line, plugin.id) : [];
  } catch (error) {
    parts.onError(error, 'taking the file of a message');
    return told('files_failed', say.filesFailed);
  }
  // The deadline starts after the files were fetched.
  const until = performance.now() + parts.timeoutMs;
  const event = eventOf(line, trigger.name, asked.args, files);
  const call = callAt(until, decision.settings.record ? recordingOf(command, event, null) : null);
  const outcome = await execute(parts, call, plugin, event);
  const now = Date.now();
  parts.quarantine.note(plugin, trigger.name, caller, outcome, now);
  appendCall(parts.records, call, outcome, decided(decision), now);
  if (outcome.kind === 'ok') return { outcome: 'ran', answer: null, pluginId: plugin.id };
  // Another host, or this one after its restart, handles the message again.
  if (outcome.kind === 'draining') throw new ServiceError('draining', 'the host is shutting down');
  // Replies of a handler that failed are discarded, because half an answer would mislead.
  scope.replies.length = 0;
  const busy = outcome.kind === 'no_slot' || outcome.kind === 'queue_full' || outcome.kind === 'memory_budget';
  return told(outcome.kind, busy ? say.busy : say.failed(asked.word));
}

const eventOf = (
  { channel, message, parts, requestId, userId }: Line,
  trigger: string,
  args: readonly string[],
  files: readonly FileRecord[],
): string =>
  messageEvent({
    trigger,
    requestId,
    deadlineMs: parts.timeoutMs,
    channel: channel.name,
    message,
    args,
    userId,
    files,
  });

function execute(
  parts: MessageParts,
  call: HostCall,
  plugin: InstalledPlugin,
  event: string,
): Promise<ExecutionOutcome> {
  return new Promise(resolve =>
    parts.execute({
      pluginId: plugin.id,
      moduleId: plugin.moduleId,
      entry: ENTRY.message,
      callers: [],
      caller: call.caller,
      event,
      body: null,
      deadline: call.deadline,
      isRecorded: call.recording !== null,
      context: call,
      // Copied, because the outcome has views of shared memory that are valid only until this returns.
      done: o => resolve({ ...o, body: EMPTY, output: EMPTY }),
    }),
  );
}

/** Fetches and stores the files of a message. @throws Error when one cannot be fetched or stored */
async function takeFiles({ channel, message, parts, scope, userId }: Line, pluginId: string): Promise<FileRecord[]> {
  const signal = AbortSignal.timeout(LIMITS.messageFilesMs);
  const files: FileRecord[] = [];
  for (const file of message.files) {
    const bytes = await channel.download(file, signal);
    const description = descriptionOf(file);
    files.push(await parts.files.storeOfMessage({ pluginId, userId, chat: scope.chat }, description, bytes));
  }
  return files;
}

/**
 * Describes a file of a message. A name or type that is not valid is replaced, because a messenger may send any text.
 */
function descriptionOf({ fileType, mimeType, name }: IncomingFile): FileDescription {
  const said = { name, mime_type: mimeType, file_type: fileType };
  return (
    tryDescription(said) ??
    tryDescription({ ...said, name: fileType }) ??
    parseDescription({ name: fileType, mime_type: 'application/octet-stream', file_type: 'document' })
  );
}

function tryDescription(said: Parameters<typeof parseDescription>[0]): FileDescription | null {
  try {
    return parseDescription(said);
  } catch {
    return null;
  }
}

/** The key the execution is counted under: the linked user, or the account of the messenger. */
const callerOf = ({ channel, message, userId }: Line): string =>
  callerKey(userId === null ? null : { kind: 'user', userId }, `${channel.name.toLowerCase()}/${message.accountId}`);

/** The reason of a refusal for the execution record. */
const decided = ({ detail, policy, reason, roles }: CommandDecision): object => ({ reason, detail, roles, policy });

const refusalText = ({ detail, reason }: CommandDecision): string => (detail === '' ? reason : `${reason}: ${detail}`);

function refusalAnswer({ language, userId }: Line, { reason }: CommandDecision, word: string): string {
  const say = ANSWERS[language];
  if (reason === 'disabled') return say.disabled(word);
  if (reason === 'unavailable') return say.busy;
  return userId === null ? say.linkFirst(word) : say.denied(word);
}

/** Queues the plugin's replies, or the host's answer instead. */
async function queueAnswers(line: Line, { answer, pluginId }: Handled): Promise<void> {
  const { channel, client, message, requestId, scope, userId } = line;
  const messages: Message[] = answer === null ? scope.replies : [{ text: answer, files: [] }];
  const source = answer === null ? 'reply' : 'host';
  await appendMessages(
    client,
    messages.map((m, k) => ({
      channel: channel.name,
      chatId: message.chatId,
      pluginId: answer === null ? pluginId : null,
      source,
      userId,
      message: m,
      requestId,
      onceKey: `${scope.key} ${source} ${k}`,
    })),
  );
}
