import { outboxRoutes } from '../api/access/outbox-api.ts';
import { policyRoutes } from '../api/access/policies-api.ts';
import { relationshipRoutes } from '../api/access/relationships-api.ts';
import { roleRoutes } from '../api/access/roles-api.ts';
import type { Attention } from '../api/operation/attention-api.ts';
import { accessRoutes } from '../api/plugins/access-api.ts';
import { commandRoutes } from '../api/plugins/commands-api.ts';
import { triggerRoutes } from '../api/plugins/triggers-api.ts';
import { CommandAccess } from '../authz/command-access.ts';
import { COMMAND_CHANGED, CommandSettingsCache } from '../authz/command-settings.ts';
import { Policies } from '../authz/policies.ts';
import { findBrokenPolicies } from '../authz/stored-policies.ts';
import { SubjectContexts } from '../authz/subject-context.ts';
import { messageOf } from '../base/errors.ts';
import { counter, gauge, histogram } from '../base/metric.ts';
import type { Database } from '../db/database.ts';
import { type HeldLock, holdLockOfHost } from '../db/held-lock.ts';
import { LOCKS } from '../db/locks.ts';
import { PLUGIN_CHANGED } from '../db/notifications.ts';
import { Graph } from '../graph/graph.ts';
import { type GraphSchema, readGraphSchema } from '../graph/graph-schema.ts';
import { GraphStore } from '../graph/graph-store.ts';
import { remoteStore } from '../graph/remote-store.ts';
import { IDENTITY_CHANGED, parseIdentityChange } from '../identity/identity-changes.ts';
import { OUTBOX_APPENDED } from '../outbox/append.ts';
import { Deliverer } from '../outbox/deliver.ts';
import { DELIVER_QUEUE, outboxDeliverJob } from '../outbox/deliver-job.ts';
import { outboxCounts } from '../outbox/entries.ts';
import { findNewestComparison, GraphComparison, graphComparisonJob } from '../outbox/graph-comparison.ts';
import { Outbox } from '../outbox/outbox.ts';
import { OUTBOX_DELIVERED, parseDelivered } from '../outbox/stream.ts';
import { outboxSweepJob } from '../outbox/sweep-job.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';
import type { Plugins } from './plugins.ts';
import type { Records } from './records.ts';

/** What decides who may, and what keeps the graph in step. */
export type Authz = Feature & {
  schema: GraphSchema;
  graph: Graph;
  deliverer: Deliverer;
  outbox: Outbox;
  contexts: SubjectContexts;
  policies: Policies;
  commands: CommandSettingsCache;
  commandAccess: CommandAccess;
  /** An embedded store came up, empty; it is used when it has been filled. */
  useEmbedded(endpoint: string): void;
};

export type AuthzParts = Pick<Plugins, 'registry'> &
  Pick<Records, 'quarantine'> & {
    /** Names this host, whose processes share one embedded store. */
    hostId: number;
    /** Told when an embedded store is asked and all others may end. */
    inUse(endpoint: string): void;
  };

/** A store that was replaced is let go when what was asked of it has been answered. */
const LET_GO_MS = 5000;
const GRAPH_SECONDS = 'plugin_host_graph_duration_seconds';
const BROKEN_POLICY = 'a stored policy does not compile: it lets no caller in until it is set again';

/** A change of rights that has waited for longer has not reached the graph store in time. */
const LATE_SECONDS = 60;

async function outboxAttention(db: Database): Promise<Attention[]> {
  const [{ dead, oldestSeconds, pending }, compared] = await Promise.all([outboxCounts(db), findNewestComparison(db)]);
  const found: Attention[] = [];
  if (dead > 0)
    found.push({ kind: 'outbox_dead', severity: 'bad', plugin: null, count: dead, detail: null, since: null });
  if (oldestSeconds > LATE_SECONDS) {
    const since = new Date(Date.now() - oldestSeconds * 1000);
    found.push({ kind: 'outbox_late', severity: 'warn', plugin: null, count: pending, detail: null, since });
  }
  const differing = compared === null || compared.repaired ? 0 : compared.missing + compared.extra;
  if (compared !== null && differing > 0)
    found.push({
      kind: 'graph_differs',
      severity: 'bad',
      plugin: null,
      count: differing,
      detail: null,
      since: compared.at,
    });
  return found;
}

export function composeAuthz({ changes, config, db, jobs, log, tracing }: Core, parts: AuthzParts): Authz {
  const { quarantine, registry } = parts;
  const v = config.values;
  const remote = remoteStore(config);
  const schema = readGraphSchema();
  // A clock that is never set back.
  const now = (): number => performance.now();
  const graph = new Graph(now, () => outbox.lookAtStore());
  const deliverer = new Deliverer(db, schema, tracing);
  const contexts = new SubjectContexts(db, graph, now);
  const policies = new Policies(contexts, graph, now, (policy, reason) => log.error({ policy, reason }, BROKEN_POLICY));
  const commands = new CommandSettingsCache(db, now);
  const embedded = new Map<GraphStore, string>();
  const timers = new Set<NodeJS.Timeout>();
  const later = (work: () => void): void => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      work();
    }, LET_GO_MS);
    timers.add(timer);
  };
  const letGo = (store: GraphStore): void => {
    embedded.delete(store);
    later(() => store.close());
  };
  const outbox: Outbox = new Outbox({
    db,
    deliverer,
    log,
    queue: {
      request: () => jobs.request(DELIVER_QUEUE),
      requestAgain: () => jobs.requestAgain(DELIVER_QUEUE),
      wake: () => jobs.wake(DELIVER_QUEUE),
      resume: () => jobs.resume(DELIVER_QUEUE),
      pause: () => jobs.pause(DELIVER_QUEUE),
    },
    onStore(store, before, token) {
      graph.useStore(store);
      if (token !== '') graph.delivered(token);
      contexts.invalidateUser(null);
      if (before !== null) letGo(before);
      const endpoint = embedded.get(store);
      if (endpoint !== undefined) later(() => parts.inUse(endpoint));
    },
  });
  const forget = (): void => {
    graph.mayHaveChanged();
    contexts.invalidateUser(null);
    commands.invalidateCommandPolicy(null);
  };
  /** An embedded store belongs to one host: what another one delivers does not reach it. */
  let lock: HeldLock | null = null;
  let isHeld = false;
  let newest = '';
  const useNewest = (): void => {
    const store = new GraphStore({ endpoint: newest, token: 'embedded', tls: false, isOurs: true });
    embedded.set(store, newest);
    outbox.useStore(store);
  };
  const commandAccess = new CommandAccess({ commands, contexts, policies, graph, changes });
  const authz = { schema, graph, deliverer, outbox, contexts, policies, commands, commandAccess };
  const comparison = new GraphComparison({ db, graph, schema, deliverer });
  return {
    ...authz,
    routes: [
      ...triggerRoutes({ db, registry, quarantine, schema }),
      ...commandRoutes({ db, registry, schema }),
      ...policyRoutes({ db, registry, ...authz }),
      ...accessRoutes({ db, registry, quarantine, ...authz }),
      ...relationshipRoutes({ db, ...authz }),
      ...outboxRoutes({ db, comparison, ...authz }),
      ...roleRoutes({ db, registry, ...authz }),
    ],
    jobs: [
      outboxDeliverJob(
        ended => outbox.deliver(ended),
        () => log.warn({}, 'a job that delivers the outbox has failed five times; another one follows by itself'),
      ),
      outboxSweepJob(db),
      graphComparisonJob(comparison),
    ],
    duties: () => (outbox.isAtWork ? ['outbox_delivery'] : []),
    attention: () => outboxAttention(db),
    async metrics() {
      const { dead, oldestSeconds, pending } = await outboxCounts(db);
      return [
        gauge(
          'plugin_host_outbox_entries',
          'Entries of the outbox that are not delivered.',
          [
            [{ state: 'pending' }, pending],
            [{ state: 'dead' }, dead],
          ],
          'max',
        ),
        gauge(
          'plugin_host_outbox_oldest_seconds',
          'How long the oldest entry of the outbox has waited.',
          oldestSeconds,
          'max',
        ),
        histogram(
          GRAPH_SECONDS,
          'How long the graph store took to answer.',
          (['check', 'lookup'] as const).flatMap(call => graph.durations[call].series(GRAPH_SECONDS, { call })),
        ),
        counter('plugin_host_graph_failures_total', 'Calls of the graph store that failed.', graph.failures),
      ];
    },
    channels: {
      [OUTBOX_APPENDED]: () => outbox.appended(),
      [OUTBOX_DELIVERED](payload) {
        const { token, users } = parseDelivered(payload);
        if (token !== '') graph.delivered(token);
        else if (users === null) graph.mayHaveChanged();
        contexts.invalidateGroups(users);
        outbox.delivered();
      },
      [COMMAND_CHANGED]: payload => commands.invalidateCommandPolicy(payload),
      [PLUGIN_CHANGED]: () => commands.invalidateCommandPolicy(null),
      [IDENTITY_CHANGED](payload) {
        const change = parseIdentityChange(payload);
        if (change === null || change.what === 'user') contexts.invalidateUser(change?.id ?? null);
      },
    },
    async readAll() {
      // The database may have been restored: the graph is asked when the store was compared with it.
      graph.leaveStore();
      forget();
      outbox.lookAgain();
    },
    useEmbedded(endpoint) {
      newest = endpoint;
      lock ??= holdLockOfHost(v['database.url'], LOCKS.embeddedGraph, parts.hostId, {
        held() {
          isHeld = true;
          useNewest();
        },
        lost() {
          isHeld = false;
          graph.leaveStore();
          outbox.leaveStore();
          for (const store of embedded.keys()) letGo(store);
        },
        refused: () =>
          log.error(
            {},
            'another host of this database has an embedded graph store; name one store for all with spicedb.endpoint. Until then nothing that needs the graph is decided here',
          ),
      });
      if (isHeld) useNewest();
    },
    start() {
      if (remote !== null) outbox.useStore(remote);
      outbox.wake();
      findBrokenPolicies(db, (of, reason) => log.error({ ...of, reason }, BROKEN_POLICY)).catch((error: unknown) =>
        log.warn({ error: messageOf(error) }, 'stored policies could not be checked'),
      );
    },
    async close() {
      await lock?.close();
      await outbox.close();
      for (const timer of timers) clearTimeout(timer);
      graph.close();
      // One that was to be compared with the database again is not the graph's.
      remote?.close();
      for (const store of embedded.keys()) store.close();
    },
  };
}
