import { ServiceError } from '../base/errors.ts';
import { jsonReply } from '../http/message.ts';
import type { ExecutionRecords, StoredRecord } from '../records/execution-records.ts';
import { pageReply, pathIdOf, queryOf, type Route, sinceOf } from './route.ts';

export type ExecutionsApiParts = { records: ExecutionRecords };

const LEVELS = ['debug', 'info', 'warn', 'error'];

const OUTCOMES: readonly string[] = [
  'ok',
  'handler_error',
  'trapped',
  'exited',
  'invalid_response',
  'quota',
  'load_failed',
  'no_slot',
  'queue_full',
  'deadline',
  'memory_budget',
  'crashed',
  'draining',
  'refused',
];

function recordJson(r: StoredRecord) {
  return {
    id: r.id,
    request_id: r.requestId,
    trace_id: r.traceId === '' ? null : r.traceId,
    plugin_id: r.pluginId,
    version: r.version,
    trigger: r.trigger,
    principal: r.principal,
    outcome: r.outcome,
    status: r.status,
    started_at: r.startedAt,
    queue_wait_ms: Math.round(r.queueWaitMs * 1000) / 1000,
    run_ms: Math.round(r.runMs * 1000) / 1000,
    host_calls: r.hostCalls,
    peak_pages: r.peakPages,
    failure: r.failure === '' ? null : r.failure,
    log_lines: r.log.length,
  };
}

function outcomeOf(raw: string | undefined): string | undefined {
  if (raw === undefined || OUTCOMES.includes(raw)) return raw;
  const message = `must be one of ${OUTCOMES.join(', ')}`;
  throw new ServiceError('validation_failed', `outcome ${message}`, {
    errors: [{ pointer: 'query:outcome', message }],
  });
}

/** Execution records (docs/plugins.md "Records"). Those of an uninstalled plugin can still be read until they age out. */
export function executionRoutes(parts: ExecutionsApiParts): Route[] {
  const { records } = parts;
  return [
    {
      method: 'GET',
      path: '/api/admin/plugins/:id/executions',
      guard: 'admin',
      key: ['read', 'operate', 'plugins:deploy'],
      async handle({ request }) {
        const query = queryOf(request, ['limit', 'cursor', 'outcome', 'trigger', 'since', 'request_id', 'trace_id']);
        const outcome = outcomeOf(query.get('outcome'));
        const trigger = query.get('trigger');
        const since = sinceOf(query.get('since'));
        const requestId = query.get('request_id');
        const traceId = query.get('trace_id');
        const filter = {
          ...(outcome === undefined ? {} : { outcome }),
          ...(trigger === undefined ? {} : { trigger }),
          ...(since === undefined ? {} : { since }),
          ...(requestId === undefined ? {} : { requestId }),
          ...(traceId === undefined ? {} : { traceId }),
        };
        const load = (before: number, limit: number) => records.list(request.params.id!, { ...filter, before, limit });
        return await pageReply(query, load, recordJson);
      },
    },
    {
      method: 'GET',
      path: '/api/admin/plugins/:id/executions/:execution',
      guard: 'admin',
      key: ['read', 'operate', 'plugins:deploy'],
      async handle({ request }) {
        const id = pathIdOf(request, 'execution');
        const record = id === undefined ? undefined : await records.find(request.params.id!, id);
        if (record === undefined)
          throw new ServiceError(
            'not_found',
            `plugin "${request.params.id}" has no execution record ${request.params.execution}`,
          );
        return jsonReply(200, {
          ...recordJson(record),
          decision: record.decision,
          log: record.log.map(l => ({ level: LEVELS[l.level] ?? 'info', text: l.text })),
        });
      },
    },
  ];
}
