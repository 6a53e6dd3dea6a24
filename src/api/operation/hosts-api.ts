import { z } from 'zod';
import { appendAudit } from '../../audit/audit-log.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Database } from '../../db/database.ts';
import { forgetHost, listProcesses, type SeenProcess } from '../../records/host-processes.ts';
import { actorOf } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { time } from '../contract/fields.ts';
import { idParam } from '../contract/params.ts';
import { noParameters } from '../contract/query.ts';
import { replyWriter } from '../contract/reply-writer.ts';
import type { Route } from '../contract/route.ts';

export type HostsApiParts = { db: Database };

const duties = z.array(z.string()).describe('Work that one host at a time does, and this one does now');

const processState = z.enum(['serving', 'draining', 'silent']);

const hostProcess = z
  .object({
    pid: z.int(),
    version: z.string(),
    started_at: time,
    seen_at: time,
    state: processState,
    duties,
    load: z.object({
      executions_in_flight: z.int(),
      lanes: z.int().describe('Threads that run plugins'),
      connections: z.int().describe('Open connections of clients'),
      resident_bytes: z.int(),
      cpu: z.number().describe('Processors it uses, 1 being a whole one'),
    }),
  })
  .meta({ id: 'HostProcess' });

const host = z
  .object({
    id: z.string(),
    name: z.string().describe('Name of the machine'),
    address: z.string().describe('Where it listens'),
    state: processState.describe('silent: it has written nothing for five seconds; draining: it is about to end'),
    versions: z.array(z.string()).describe('Releases of its processes; two while it is upgraded'),
    started_at: time,
    seen_at: time,
    duties,
    processes: z.array(hostProcess),
  })
  .meta({ id: 'Host' });

/** The hosts of this service (docs/operating.md "Several hosts"). */
export const hosts = resource('Hosts', 'The hosts of this service, and what each does.', {
  list: {
    method: 'GET',
    path: '/api/admin/hosts',
    guard: 'admin',
    key: ['read', 'operate'],
    summary: 'List the hosts with their processes, load and duties',
    description: 'A host that ended without a word is listed as silent for a day.',
    query: noParameters,
    replies: { 200: z.object({ items: z.array(host) }) },
  },
  forget: {
    method: 'DELETE',
    path: '/api/admin/hosts/:host',
    guard: 'admin',
    key: ['operate'],
    summary: 'Forget a silent host that does not come back',
    params: { host: idParam('host') },
    replies: { 204: null },
    refusals: ['not_found', 'conflict'],
  },
});

const stateOf = (p: SeenProcess): z.infer<typeof processState> =>
  p.isSilent ? 'silent' : p.load.draining === true ? 'draining' : 'serving';

const writeProcess = replyWriter(hostProcess);
const processJson = (p: SeenProcess) => writeProcess({ ...p, state: stateOf(p) });

function hostJson(all: readonly SeenProcess[]) {
  const [first] = all;
  if (first === undefined) throw new Error('a host has a process');
  const serving = all.filter(p => !p.isSilent);
  const states = new Set(all.map(stateOf));
  // A process that has crashed is not the host's any more while others go on.
  const shown = serving.length > 0 ? serving : all;
  const times = (of: (p: SeenProcess) => Date): number[] => shown.map(p => of(p).getTime());
  return {
    id: String(first.hostId),
    name: first.hostName,
    address: first.address,
    state: (['serving', 'draining'] as const).find(s => states.has(s)) ?? ('silent' as const),
    versions: [...new Set(shown.map(p => p.version))],
    started_at: new Date(Math.min(...times(p => p.startedAt))),
    seen_at: new Date(Math.max(...times(p => p.seenAt))),
    duties: [...new Set(serving.flatMap(p => p.duties))],
    processes: shown.map(processJson),
  };
}

const list: Handle<typeof hosts.list, HostsApiParts> = async ({ db }) => {
  const byHost = Map.groupBy(await listProcesses(db), p => p.hostId);
  return { status: 200, json: { items: [...byHost.values()].map(hostJson) } };
};

const forget: Handle<typeof hosts.forget, HostsApiParts> = async ({ db }, { caller, params, request }) => {
  await db.withTransaction(async client => {
    const gone = await forgetHost(client, params.host);
    if (gone === null)
      throw new ServiceError('conflict', `host ${params.host} serves: only silent hosts are forgotten`);
    if (gone === 0) throw new ServiceError('not_found', `there is no host ${params.host}`);
    await appendAudit(client, actorOf(caller, request), {
      action: 'host.forget',
      objectType: 'host',
      objectId: String(params.host),
    });
  });
  return { status: 204 };
};

export const hostRoutes = (parts: HostsApiParts): Route[] => serve(hosts, parts, { list, forget });
