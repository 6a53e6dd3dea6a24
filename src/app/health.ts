import type { Attention } from '../api/operation/attention-api.ts';
import type { HealthCheck } from '../api/operation/health-api.ts';
import { lackOfSpace } from '../base/disk-space.ts';
import { messageOf, notCurrent } from '../base/errors.ts';
import { gauge, type Metric } from '../base/metric.ts';
import { dataPath } from '../config/load.ts';
import type { Database } from '../db/database.ts';
import type { Graph } from '../graph/graph.ts';
import type { Core } from './core.ts';

/** The graph store is asked once in this time, however often clients ask for the health of the service. */
const GRAPH_MS = 1000;
/** A store that takes longer than this, twice, is slow: a change of rights waits for it, and then goes on without. */
const GRAPH_SLOW_MS = 500;

/** The answer of before, while it is new enough: questions without a credential must not become calls. */
export function remembered<T>(ms: number, look: () => Promise<T>): () => Promise<T> {
  let at = Number.NEGATIVE_INFINITY;
  let answer: Promise<T> | null = null;
  return () => {
    if (answer === null || performance.now() - at > ms) {
      at = performance.now();
      answer = look();
    }
    return answer;
  };
}

/** A server outside is asked once in this time, and only while an administrator looks at what needs attention. */
const OUTSIDE_MS = 2000;
/** One that takes longer to answer is away. */
const OUTSIDE_SILENT_MS = 1500;

/**
 * What of a server outside, like that for mail, waits for an administrator: nothing while it answers. `/readyz` leaves it out:
 * requests do not need it.
 *
 * @param name of the check
 * @param ask rejects when the server does not answer as it should
 */
export function outsideAttention(
  name: string,
  ask: (signal: AbortSignal) => Promise<void>,
): () => Promise<readonly Attention[]> {
  const look = remembered(OUTSIDE_MS, async () => {
    const signal = AbortSignal.timeout(OUTSIDE_SILENT_MS);
    const late = new Promise<string>(resolve => {
      signal.addEventListener('abort', () => resolve(`no answer within ${OUTSIDE_SILENT_MS / 1000} s`));
    });
    return await Promise.race([late, ask(signal).then(() => null, messageOf)]);
  });
  return async () => {
    const detail = await look();
    if (detail === null) return [];
    return [{ kind: 'check_failed', severity: 'warn', plugin: null, count: 1, check: name, detail, since: null }];
  };
}

/** What is wrong with the graph store; null when it answers in time. */
async function graphProblem(graph: Graph): Promise<string | null> {
  let took = 0;
  // One slow answer may be chance.
  for (let k = 0; k < 2; k++) {
    const began = performance.now();
    try {
      await graph.ping();
    } catch (error) {
      return `the graph store does not answer: ${messageOf(error)}`;
    }
    took = performance.now() - began;
    if (took <= GRAPH_SLOW_MS) return null;
  }
  return `the graph store answers after ${Math.round(took)} ms: decisions that need it are late, and changes of rights are answered before they are delivered`;
}

/** Whether the database takes changes: after a failover it may be the replica, and a full disk makes operators switch writing off. */
async function writeProblem(db: Database): Promise<string | null> {
  const { rows } = await db.query<{ readOnly: boolean }>(
    `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS "readOnly"`,
  );
  return rows[0]?.readOnly === true
    ? 'the database is read-only: nothing can be changed here, data of plugins included'
    : null;
}

/**
 * The checks as a metric: what they found the last time, because a check may take longer than a scrape waits. Each scrape begins the next
 * look.
 */
function healthMetric(checks: readonly HealthCheck[]): () => Metric[] {
  const failed = new Map<string, number>();
  const look = ({ look: ask, name }: HealthCheck): void =>
    void ask().then(
      problem => failed.set(name, problem === null ? 0 : 1),
      () => failed.set(name, 1),
    );
  return () => {
    for (const check of checks) look(check);
    const rows = [...failed].map(([check, value]) => [{ check }, value] as const);
    return [gauge('plugin_host_check_failed', 'Whether something is wrong with what /readyz looks at.', rows, 'max')];
  };
}

/** What `/readyz` looks at, in the order in which a failure is named. */
function healthChecks(
  { changes, config, db }: Core,
  { graph, storeHealth }: { graph: Graph; storeHealth: readonly HealthCheck[] },
): HealthCheck[] {
  return [
    {
      // First: without it no changes are heard either.
      name: 'database',
      needed: true,
      look: () =>
        db.query('SELECT 1').then(
          () => null,
          () => 'the database does not answer',
        ),
    },
    {
      name: 'changes',
      needed: true,
      look: async () => ((await changes.becomesCurrent()) ? null : `${notCurrent().message}; public triggers go on`),
    },
    {
      name: 'writes',
      needed: false,
      // The check before says everything else that can be wrong.
      look: () => writeProblem(db).catch(() => null),
    },
    {
      name: 'disk',
      needed: true,
      look: async () => lackOfSpace(dataPath(config), config.values['data.min_free_mb']),
    },
    {
      name: 'graph',
      needed: false,
      look: remembered(GRAPH_MS, () => graphProblem(graph)),
    },
    ...storeHealth,
  ];
}

type HealthParts = Parameters<typeof healthChecks>[1];

/** The checks, and what they found as a metric. */
export function watchHealth(core: Core, parts: HealthParts): { checks: HealthCheck[]; health: () => Metric[] } {
  const checks = healthChecks(core, parts);
  return { checks, health: healthMetric(checks) };
}
