import type { HealthCheck } from '../api/health-api.ts';
import { lackOfSpace } from '../base/disk-space.ts';
import { messageOf, notCurrent } from '../base/errors.ts';
import { dataPath } from '../config/load.ts';
import type { Graph } from '../graph/graph.ts';
import type { Core } from './core.ts';

/** The graph store is asked once in this time, however often clients ask for the health of the service. */
const GRAPH_MS = 1000;

/** The answer of before, while it is new enough: questions without a credential must not become calls. */
export function remembered(ms: number, look: () => Promise<string | null>): () => Promise<string | null> {
  let at = Number.NEGATIVE_INFINITY;
  let answer: Promise<string | null> = Promise.resolve(null);
  return () => {
    if (performance.now() - at > ms) {
      at = performance.now();
      answer = look();
    }
    return answer;
  };
}

/** What `/readyz` looks at, in the order in which a failure is named. */
export function healthChecks(
  { changes, config, db }: Core,
  { graph, storeHealth }: { graph: Graph; storeHealth: readonly HealthCheck[] },
): HealthCheck[] {
  return [
    {
      name: 'changes',
      needed: true,
      look: async () => ((await changes.becomesCurrent()) ? null : `${notCurrent().message}; public triggers go on`),
    },
    {
      name: 'database',
      needed: true,
      look: () =>
        db.query('SELECT 1').then(
          () => null,
          () => 'the database does not answer',
        ),
    },
    {
      name: 'disk',
      needed: true,
      look: async () => lackOfSpace(dataPath(config), config.values['data.min_free_mb']),
    },
    {
      name: 'graph',
      needed: false,
      look: remembered(GRAPH_MS, () =>
        graph.ping().then(
          () => null,
          (error: unknown) => `the graph store does not answer: ${messageOf(error)}`,
        ),
      ),
    },
    ...storeHealth,
  ];
}
