import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError, UsageError } from '../../base/errors.ts';
import { jsonText } from '../print/json-text.ts';
import { allOf, PAGE_MAX } from './find-named.ts';
import { type Answer, ask, type Remote, type RemoteFlags } from './remote.ts';

/** `plugin call`, `plugin logs`: what a plugin answers and what it writes, from a terminal. */

export type CallFlags = { method?: string; data?: string; bearer?: string; header: string[]; json?: boolean };

const CALL_MS = 30_000;

/** Headers of a request to a trigger. @throws UsageError for a line that is no header */
export function headersOf({ bearer, data, header }: Pick<CallFlags, 'bearer' | 'data' | 'header'>): Headers {
  const headers = new Headers();
  if (data !== undefined) headers.set('content-type', 'application/json');
  for (const line of header) {
    const [, name, value] = /^([^:\s]+):\s*(.*)$/.exec(line) ?? [];
    if (name === undefined) throw new UsageError(`--header "${line}" is no header: write it like "Name: value"`);
    headers.set(name, value ?? '');
  }
  if (bearer !== undefined) headers.set('authorization', `Bearer ${bearer}`);
  return headers;
}

const recordOf = (id: string, requestId: string): string =>
  `\nwhy it failed, and what it wrote: plugin-host executions show ${id} ${requestId}`;
/** What to do next, by the status. */
const HELP: Readonly<Record<number, (id: string, requestId: string) => string>> = {
  401: () =>
    '\na user makes a token at /account/ of the service, an administrator makes service keys; --bearer sends either',
  404: () =>
    '\nthe path is that of the trigger alone, like /visits/home; plugin-host plugin list shows what is installed and enabled',
  502: recordOf,
  503: id => `\nplugin-host status shows what is suspended, and plugin-host plugin logs ${id} what failed before`,
  504: recordOf,
};

/**
 * `plugin call ID PATH`: calls an HTTP trigger.
 *
 * @param url address of the service
 * @returns what it answered; the command ends with 1 for a status from 400 on
 */
export async function callPlugin(url: string, id: string, path: string, flags: CallFlags): Promise<Answer> {
  if (!path.startsWith('/')) throw new UsageError(`the path "${path}" must begin with /, like the path of a trigger`);
  const method = (flags.method ?? (flags.data === undefined ? 'GET' : 'POST')).toUpperCase();
  const where = `${url.replace(/\/$/, '')}/api/triggers/http/${encodeURIComponent(id)}${path}`;
  const answer = await fetch(where, {
    method,
    headers: headersOf(flags),
    ...(flags.data === undefined ? {} : { body: flags.data }),
    redirect: 'manual',
    signal: AbortSignal.timeout(CALL_MS),
  }).catch((error: unknown) => {
    throw new OperatorError(`${where} does not answer: is the service running there? --url names another address`, {
      cause: error,
    });
  });
  const body = await answer.text();
  const facts = { status: answer.status, headers: Object.fromEntries(answer.headers), body };
  const requestId = answer.headers.get('x-request-id') ?? '-';
  // What the plugin answers itself is its own matter.
  const isOfService = answer.headers.get('content-type')?.startsWith('application/problem+json') === true;
  const help = isOfService ? (HELP[answer.status]?.(id, requestId) ?? '') : '';
  const line = `${answer.status} (request ${requestId})`;
  const text = flags.json === true ? jsonText(facts) : answer.ok ? body : `${line}\n${body}${help}`;
  return { text, exitCode: answer.status < 400 ? 0 : 1 };
}

/** How often new executions are asked for. */
const FOLLOW_MS = 1000;
const LIMIT_MAX = 100;

type Item = { id: number; started_at: string; trigger: string; outcome: string; status: number; run_ms: number };

/** An execution and what it wrote, as lines. */
async function linesOf({ host, json }: Remote, plugin: string, item: Item): Promise<string[]> {
  const params = { path: { id: plugin, execution: item.id } };
  const record = await ask(() => host.GET('/api/admin/plugins/{id}/executions/{execution}', { params }));
  if (json) return [JSON.stringify(record)];
  const { failure, id, log, outcome, run_ms, started_at, status, trigger } = record;
  return [
    `${started_at} ${trigger} ${outcome} ${status} ${run_ms.toFixed(1)} ms, execution ${id}`,
    ...log.map(l => `  ${l.level}: ${l.text.replaceAll('\n', '\n    ')}`),
    ...(failure === null ? [] : [`  ${failure.replaceAll('\n', '\n    ')}`]),
  ];
}

const NO_EXECUTIONS =
  'no executions are recorded; a request that was refused before a policy was asked (401, 403, 404) leaves none';

export type LogFlags = RemoteFlags & { follow?: boolean; limit?: string };

/**
 * `plugin logs ID`: recorded executions of a plugin with what they wrote, the oldest first.
 *
 * @param print writes lines; with `--follow` for as long as the command runs
 */
export async function pluginLogs(r: Remote, id: string, flags: LogFlags, print: (text: string) => void): Promise<void> {
  const first = flags.limit === undefined ? 20 : Number(flags.limit);
  if (!Number.isInteger(first) || first < 1 || first > LIMIT_MAX)
    throw new UsageError(`--limit must be a whole number from 1 to ${LIMIT_MAX}, not "${flags.limit}"`);
  // An unknown plugin has no executions either.
  if (flags.follow === true) await ask(() => r.host.GET('/api/admin/plugins/{id}', { params: { path: { id } } }));
  const { items } = await ask(() =>
    r.host.GET('/api/admin/plugins/{id}/executions', { params: { path: { id }, query: { limit: first } } }),
  );
  const show = async (some: readonly Item[]): Promise<void> => {
    for (const item of some) for (const line of await linesOf(r, id, item)) print(line);
  };
  await show(items.toReversed());
  if (flags.follow === true) return await follow(r, id, items, show);
  if (items.length > 0 || r.json) return;
  await ask(() => r.host.GET('/api/admin/plugins/{id}', { params: { path: { id } } }));
  print(NO_EXECUTIONS);
}

/**
 * Shows each execution that is recorded after those that are known, once. The newest page is looked at again each time: the
 * numbers of other hosts may become visible later than those of the next ones.
 */
async function follow(
  r: Remote,
  id: string,
  known: readonly Item[],
  show: (some: readonly Item[]) => Promise<void>,
): Promise<never> {
  const lowest = (items: readonly Item[]): number => items.at(-1)?.id ?? 0;
  let shown = new Set(known.map(i => i.id));
  let last = known[0]?.id ?? 0;
  let from = lowest(known);
  for (;;) {
    await sleep(FOLLOW_MS);
    const items = await allOf<Item>(
      query => r.host.GET('/api/admin/plugins/{id}/executions', { params: { path: { id }, query } }),
      {},
      so => lowest(so) <= last,
    );
    const found = items.filter(i => i.id > from && !shown.has(i.id));
    await show(found.toReversed());
    last = Math.max(last, found[0]?.id ?? 0);
    from = Math.max(from, lowest(items.slice(0, PAGE_MAX)) - 1);
    shown = new Set([...shown, ...found.map(i => i.id)].filter(n => n > from));
  }
}
