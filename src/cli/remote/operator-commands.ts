import { present } from '../../api/contract/query.ts';
import { OUTCOMES } from '../../api/operation/executions-api.ts';
import { OperatorError, UsageError } from '../../base/errors.ts';
import { DELIVERY_STATES } from '../../events/deliveries.ts';
import { MESSAGE_STATES } from '../../messaging/outgoing.ts';
import { ENTRY_STATES } from '../../outbox/entries.ts';
import { table } from '../print/table.ts';
import { findSubscriptionId } from './find-named.ts';
import { sinceTime } from './given-time.ts';
import { ask, type Remote, type RemoteFlags, shown } from './remote.ts';

/** What operators read and mend of a running service: the outbox, executions, jobs, messages, events, imports. */

export type ListFlags = RemoteFlags & { limit?: string };

/** How many rows of a list are asked for. @throws UsageError */
export function limitOf({ limit = '20' }: ListFlags): number {
  return wholeNumber('--limit', limit, 1, 200);
}

/** @throws UsageError when an option is no number of digits in its bounds */
export function wholeNumber(option: string, text: string, least: number, most: number): number {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : -1;
  if (number < least || number > most)
    throw new UsageError(`${option} is ${JSON.stringify(text)}; it must be a whole number from ${least} to ${most}`);
  return number;
}

/** A number that names something. @throws UsageError */
export function idOf(text: string): number {
  const number = /^[1-9]\d{0,14}$/.test(text) ? Number(text) : 0;
  if (number === 0) throw new UsageError(`${JSON.stringify(text)} is not an id: ids are numbers like 42`);
  return number;
}

/** A time for people, in UTC, to the second. */
export const when = (time: string | null | undefined): string =>
  time == null ? '-' : time.slice(0, 19).replace('T', ' ');

/** The first line of a text, cut where a terminal would break it. */
export function short(text: string | null | undefined, most = 60): string {
  const line = (text ?? '').split('\n')[0] ?? '';
  return line === '' ? '-' : line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

type Columns<T> = ReadonlyArray<readonly [title: string, cell: (row: T) => string]>;

/** A page of a list as a table, with a last line when there is more. */
export function page<T>(answer: { items: readonly T[]; next_cursor?: string | null }, columns: Columns<T>): string {
  if (answer.items.length === 0) return 'none';
  const rows = answer.items.map(row => columns.map(([, cell]) => cell(row)));
  const more = answer.next_cursor == null ? '' : '\n(there are more: --limit shows up to 200)';
  return `${table([columns.map(([title]) => title), ...rows])}${more}`;
}

/** The members of one thing, a line each. */
export const members = (value: Readonly<Record<string, unknown>>): string => table(rowsOf(value, ''));

/** A row for each member; those of an object follow its name and a dot. */
const rowsOf = (value: object, before: string): string[][] =>
  Object.entries(value).flatMap(([name, member]: [string, unknown]) => {
    if (typeof member === 'object' && member !== null && !Array.isArray(member) && Object.keys(member).length > 0)
      return rowsOf(member, `${before}${name}.`);
    return [[`${before}${name}`, typeof member === 'string' ? member : member === null ? '-' : JSON.stringify(member)]];
  });

/** One of the words an option takes. @throws UsageError that names them */
export function choiceOf<T extends string>(
  option: string,
  words: readonly T[],
  text: string | undefined,
): T | undefined {
  if (text === undefined) return undefined;
  const found = words.find(w => w === text);
  if (found === undefined)
    throw new UsageError(`--${option} is ${JSON.stringify(text)}; it must be one of ${words.join(', ')}`);
  return found;
}

/** `outbox list`. @returns what to print */
export async function listOutbox(r: Remote, flags: ListFlags & { state?: string; key?: string }): Promise<string> {
  const { key } = flags;
  if (key !== undefined && !/^[^:]+:.+$/.test(key))
    throw new UsageError(`--key is ${JSON.stringify(key)}; it must be an entity like faculty:3`);
  const query = present({ limit: limitOf(flags), state: choiceOf('state', ENTRY_STATES, flags.state), key });
  const answer = await ask(() => r.host.GET('/api/admin/outbox', { params: { query } }));
  const { dead, lag_ms, paused, pending } = answer;
  const lag =
    lag_ms === null ? '' : `; commit to store ${lag_ms.p50} ms, ${lag_ms.p99} ms for the slowest of a hundred`;
  const pause = paused === null ? '' : `\nthe stream is paused since ${when(paused.since)}: ${paused.reason}`;
  const rows = page(answer, [
    ['ID', e => String(e.id)],
    ['STATE', e => e.state],
    ['OPERATION', e => e.operation],
    ['FAILED', e => `${e.attempts} times`],
    ['CREATED', e => when(e.created_at)],
    ['ENTITIES', e => short(e.keys.join(' '), 50)],
    ['LAST ERROR', e => short(e.last_error)],
  ]);
  return shown(r.json, answer, `${pending} pending, ${dead} dead${lag}${pause}\n${rows}`);
}

/** `outbox show`. @returns what to print */
export async function showOutboxEntry(r: Remote, entry: string): Promise<string> {
  const params = { path: { entry: idOf(entry) } };
  const answer = await ask(() => r.host.GET('/api/admin/outbox/{entry}', { params }));
  return shown(r.json, answer, members(answer));
}

/** `outbox retry`. @returns what to print */
export async function retryOutboxEntry(r: Remote, entry: string): Promise<string> {
  const params = { path: { entry: idOf(entry) } };
  const answer = await ask(() => r.host.POST('/api/admin/outbox/{entry}/retry', { params }));
  const as = answer.requeued_as === null ? 'nothing of it is left to deliver' : `it goes on as ${answer.requeued_as}`;
  return shown(r.json, answer, `${as}${answer.delivered ? ' and is delivered' : ''}`);
}

/** `outbox discard`. @returns what to print */
export async function discardOutboxEntry(r: Remote, entry: string): Promise<string> {
  const params = { path: { entry: idOf(entry) } };
  const answer = await ask(() => r.host.POST('/api/admin/outbox/{entry}/discard', { params }));
  return shown(r.json, answer, `entry ${answer.entry} is discarded; authz drift shows what the store lacks now`);
}

/** A name that was mistyped has nothing either. @throws OperatorError when there is no such plugin */
async function assertPlugin(r: Remote, id: string): Promise<void> {
  await ask(() => r.host.GET('/api/admin/plugins/{id}', { params: { path: { id } } }));
}

export type ExecutionFlags = ListFlags & { outcome?: string; trigger?: string; since?: string; requestId?: string };

/** `executions list`. @returns what to print */
export async function listExecutions(r: Remote, id: string, flags: ExecutionFlags): Promise<string> {
  const { outcome, requestId, since, trigger } = flags;
  const query = present({
    limit: limitOf(flags),
    outcome: choiceOf('outcome', [...OUTCOMES, 'failed'] as const, outcome),
    trigger,
    since: since === undefined ? undefined : sinceTime(since).toISOString(),
    request_id: requestId,
  });
  const answer = await ask(() => r.host.GET('/api/admin/plugins/{id}/executions', { params: { path: { id }, query } }));
  if (answer.items.length === 0) await assertPlugin(r, id);
  const text = page(answer, [
    ['ID', e => String(e.id)],
    ['STARTED', e => when(e.started_at)],
    ['TRIGGER', e => e.trigger],
    ['OUTCOME', e => e.outcome],
    ['STATUS', e => String(e.status)],
    ['WAITED', e => `${e.queue_wait_ms.toFixed(1)} ms`],
    ['RAN', e => `${e.run_ms.toFixed(1)} ms`],
    ['CALLER', e => e.principal],
    ['REQUEST', e => e.request_id],
    ['FAILURE', e => short(e.failure)],
  ]);
  return shown(r.json, answer, text);
}

/** The number of an execution, given by itself or as the id of its request. @throws OperatorError when there is none */
async function executionOf(r: Remote, id: string, text: string): Promise<number> {
  if (/^\d+$/.test(text)) return idOf(text);
  const params = { path: { id }, query: { request_id: text, limit: 2 } };
  const { items } = await ask(() => r.host.GET('/api/admin/plugins/{id}/executions', { params }));
  const [first] = items;
  if (first === undefined) throw new OperatorError(`${id} has no record of an execution of the request ${text}`);
  if (items.length > 1)
    throw new OperatorError(
      `the request ${text} has several executions of ${id}: executions list ${id} --request-id ${text}`,
    );
  return first.id;
}

/** `executions show`. @returns what to print */
export async function showExecution(r: Remote, id: string, execution: string): Promise<string> {
  const params = { path: { id, execution: await executionOf(r, id, execution) } };
  const answer = await ask(() => r.host.GET('/api/admin/plugins/{id}/executions/{execution}', { params }));
  const { failure, log, ...rest } = answer;
  const lines = [...log.map(l => `${l.level.padEnd(5)} ${l.text}`), ...(failure === null ? [] : [failure])];
  return shown(r.json, answer, [members(rest), ...(lines.length === 0 ? [] : ['', ...lines])].join('\n'));
}

/** `jobs list`. @returns what to print */
export async function listJobs(r: Remote): Promise<string> {
  const answer = await ask(() => r.host.GET('/api/admin/jobs'));
  const text = page(answer, [
    ['QUEUE', q => q.name],
    ['WAITING', q => String(q.waiting)],
    ['SINCE', q => (q.oldest_waiting_seconds === null ? '-' : `${Math.round(q.oldest_waiting_seconds)} s`)],
    ['LATER', q => String(q.deferred)],
    ['ACTIVE', q => String(q.active)],
    ['FAILED', q => String(q.failed)],
    ['LAST DONE', q => when(q.last_completed_at)],
    ['LAST ERROR', q => short(q.last_error)],
  ]);
  return shown(r.json, answer, text);
}

/** `messages list`. @returns what to print */
export async function listMessages(r: Remote, flags: ListFlags & { state?: string; plugin?: string }): Promise<string> {
  const query = present({
    limit: limitOf(flags),
    state: choiceOf('state', MESSAGE_STATES, flags.state),
    plugin: flags.plugin,
  });
  const answer = await ask(() => r.host.GET('/api/admin/messages', { params: { query } }));
  if (answer.items.length === 0 && flags.plugin !== undefined) await assertPlugin(r, flags.plugin);
  const text = page(answer, [
    ['ID', m => String(m.id)],
    ['STATE', m => m.state],
    ['CHANNEL', m => m.channel],
    ['CHAT', m => m.chat_id],
    ['PLUGIN', m => m.plugin_id ?? '-'],
    ['CREATED', m => when(m.created_at)],
    ['ATTEMPTS', m => String(m.attempts)],
    ['LAST ERROR', m => short(m.last_error)],
  ]);
  return shown(r.json, answer, text);
}

/** `messages retry`. @returns what to print */
export async function retryMessage(r: Remote, message: string): Promise<string> {
  const params = { path: { message: idOf(message) } };
  const answer = await ask(() => r.host.POST('/api/admin/messages/{message}/retry', { params }));
  return shown(r.json, answer, `message ${answer.id} is ${answer.state}`);
}

/** `events list`. @returns what to print */
export async function listEvents(r: Remote, flags: ListFlags & { plugin?: string; type?: string }): Promise<string> {
  const query = present({ limit: limitOf(flags), plugin: flags.plugin, type: flags.type });
  const answer = await ask(() => r.host.GET('/api/admin/events', { params: { query } }));
  if (answer.items.length === 0 && flags.plugin !== undefined) await assertPlugin(r, flags.plugin);
  const text = page(answer, [
    ['NUMBER', e => String(e.number)],
    ['AT', e => when(e.at)],
    ['PLUGIN', e => e.plugin_id],
    ['TYPE', e => e.type],
    ['DATA', e => short(JSON.stringify(e.data))],
  ]);
  return shown(r.json, answer, text);
}

/** `events subscriptions`. @returns what to print */
export async function listSubscriptions(r: Remote, flags: ListFlags): Promise<string> {
  const query = { limit: limitOf(flags) };
  const answer = await ask(() => r.host.GET('/api/admin/events/subscriptions', { params: { query } }));
  const text = page(answer, [
    ['ID', s => String(s.id)],
    ['NAME', s => s.name],
    ['STATE', s => (s.enabled ? 'enabled' : 'disabled')],
    ['WAITING', s => String(s.deliveries.waiting)],
    ['DEAD', s => String(s.deliveries.dead)],
    ['URL', s => s.url],
    ['WHY', s => short(s.disabled_why)],
  ]);
  return shown(r.json, answer, text);
}

/** `events deliveries`. @returns what to print */
export async function listDeliveries(r: Remote, id: string, flags: ListFlags & { state?: string }): Promise<string> {
  const query = present({ limit: limitOf(flags), state: choiceOf('state', DELIVERY_STATES, flags.state) });
  const params = { path: { id: await findSubscriptionId(r, id) }, query };
  const answer = await ask(() => r.host.GET('/api/admin/events/subscriptions/{id}/deliveries', { params }));
  const text = page(answer, [
    ['NUMBER', d => String(d.number)],
    ['STATE', d => d.state],
    ['TYPE', d => d.type],
    ['ATTEMPTS', d => String(d.attempts)],
    ['STATUS', d => String(d.last_status ?? '-')],
    ['NEXT', d => when(d.next_attempt_at)],
    ['EVENT', d => d.event_id],
    ['LAST ERROR', d => short(d.last_error)],
  ]);
  return shown(r.json, answer, text);
}

/** `events retry`. @returns what to print */
export async function retryDeliveries(r: Remote, id: string, event: string | undefined): Promise<string> {
  const params = { path: { id: await findSubscriptionId(r, id) }, query: present({ event }) };
  const answer = await ask(() => r.host.POST('/api/admin/events/subscriptions/{id}/retry', { params }));
  return shown(r.json, answer, `${answer.retried} dead deliveries are tried again`);
}
