import { page, short, when } from './operator-commands.ts';
import { ask, type Remote, shown } from './remote.ts';

const MEGABYTE = 1024 * 1024;

const seconds = (s: number | null): string => (s === null ? '' : `, the oldest for ${Math.round(s)} s`);

type Found = Awaited<ReturnType<typeof read>>;

/** Everything that is shown, asked at once. */
async function read({ host }: Remote) {
  const one = { params: { query: { limit: 1 } } };
  const [hosts, outbox, jobs, suspensions, imports, subscriptions, failed] = await Promise.all([
    ask(() => host.GET('/api/admin/hosts')),
    ask(() => host.GET('/api/admin/outbox', one)),
    ask(() => host.GET('/api/admin/jobs')),
    ask(() => host.GET('/api/admin/suspensions')),
    ask(() => host.GET('/api/admin/university/imports', one)),
    ask(() => host.GET('/api/admin/events/subscriptions', { params: { query: { limit: 200 } } })),
    ask(() => host.GET('/api/admin/messages', { params: { query: { limit: 1, state: 'failed' } } })),
  ]);
  const { backing_off, dead, lag_ms, oldest_pending_seconds, paused, pending } = outbox;
  return {
    hosts: hosts.items,
    outbox: { pending, backing_off, dead, oldest_pending_seconds, lag_ms, paused },
    jobs: jobs.items,
    suspensions: suspensions.items,
    last_import: imports.items[0] ?? null,
    subscriptions: subscriptions.items,
    last_failed_message: failed.items[0] ?? null,
  };
}

function hostLines({ hosts }: Found): string[] {
  const of = (h: Found['hosts'][number], value: 'executions_in_flight' | 'connections' | 'resident_bytes' | 'cpu') =>
    h.processes.reduce((sum, p) => sum + p.load[value], 0);
  const text = page({ items: hosts }, [
    ['HOST', h => `${h.name} ${h.address}`],
    ['STATE', h => (h.state === 'silent' ? `SILENT since ${when(h.seen_at)}, id ${h.id}` : h.state)],
    ['RELEASE', h => h.versions.join(' -> ')],
    ['SINCE', h => when(h.started_at)],
    ['PROCESSES', h => String(h.processes.length)],
    ['RUNNING', h => String(of(h, 'executions_in_flight'))],
    ['CLIENTS', h => String(of(h, 'connections'))],
    ['CPU', h => of(h, 'cpu').toFixed(2)],
    ['MEMORY', h => `${Math.round(of(h, 'resident_bytes') / MEGABYTE)} MB`],
    ['DUTIES', h => h.duties.join(' ') || '-'],
  ]);
  return [text];
}

function queueLines({ jobs, last_failed_message: failed, last_import: last, outbox, subscriptions }: Found): string[] {
  const { backing_off, dead, lag_ms: lag, oldest_pending_seconds, paused, pending } = outbox;
  const sum = (of: (q: Found['jobs'][number]) => number): number => jobs.reduce((n, q) => n + of(q), 0);
  const trouble = jobs.filter(q => q.failed > 0).map(q => `${q.name} (${q.failed})`);
  const deadDeliveries = subscriptions.reduce((n, s) => n + s.deliveries.dead, 0);
  const waiting = subscriptions.reduce((n, s) => n + s.deliveries.waiting, 0);
  const off = subscriptions.filter(s => !s.enabled).map(s => s.name);
  return [
    `outbox         ${pending} pending${seconds(oldest_pending_seconds)}${backing_off > 0 ? `, ${backing_off} backing off` : ''}, ${dead} dead${lag === null ? '' : `; ${Math.round(lag.p50)} ms to the store, p99 ${Math.round(lag.p99)} ms`}`,
    ...(paused === null ? [] : [`               PAUSED since ${when(paused.since)}: ${paused.reason}`]),
    `jobs           ${sum(q => q.waiting)} waiting, ${sum(q => q.active)} active, ${sum(q => q.failed)} failed today${trouble.length === 0 ? '' : `: ${trouble.join(', ')}`}`,
    `events         ${waiting} deliveries waiting, ${deadDeliveries} dead${off.length === 0 ? '' : `; switched off: ${off.join(', ')}`}`,
    `messages       ${failed === null ? 'none failed' : `the last failed ${when(failed.ended_at)}: ${short(failed.last_error)}`}`,
    `last import    ${last === null ? 'none' : `${last.id} ${last.kind} ${last.state}, ${when(last.started_at)}${last.problem === null ? '' : `: ${short(last.problem)}`}`}`,
  ];
}

function suspensionLines({ suspensions }: Found): string[] {
  if (suspensions.length === 0) return ['suspended      nothing'];
  return [
    page({ items: suspensions }, [
      ['SUSPENDED', s => `${s.plugin_id}${s.trigger === null ? '' : ` ${s.trigger}`}`],
      ['FOR', s => s.caller ?? 'all callers'],
      ['UNTIL', s => (s.until === null ? 'it is resumed' : when(s.until))],
      ['CAUSE', s => short(s.cause)],
    ]),
    ...new Set(
      suspensions.map(
        s => `resume it: plugin-host plugin resume ${s.plugin_id}${s.trigger === null ? '' : ` ${s.trigger}`}`,
      ),
    ),
  ];
}

/** `status`: hosts, queues, lags, suspensions and releases on one screen. @returns what to print */
export async function statusCommand(r: Remote): Promise<string> {
  const found = await read(r);
  const text = [...hostLines(found), '', ...queueLines(found), '', ...suspensionLines(found)].join('\n');
  return shown(r.json, found, text);
}
