import { z } from 'zod';
import { OUTCOME_KINDS } from '../../abi/execution-outcome.ts';
import { appendAudit } from '../../audit/audit-log.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Queryable } from '../../db/database.ts';
import type { ExecutionFeed } from '../../records/execution-feed.ts';
import type { ExecutionRecords, ListedRecord, RecordFilter } from '../../records/execution-records.ts';
import { recordedExecution } from '../../records/recorded-execution.ts';
import { findRecording, isRecorded } from '../../records/stored-recordings.ts';
import { decisionJson, recordedDecision } from '../access/recorded-decision.ts';
import { actorOf } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { id, time } from '../contract/fields.ts';
import { after, liveStream, STREAM_ABOUT } from '../contract/live-stream.ts';
import { loadPage, pageOf } from '../contract/paging.ts';
import { idParam } from '../contract/params.ts';
import { list as listOf, oneOf, present, since, text, until } from '../contract/query.ts';
import { replyWriter } from '../contract/reply-writer.ts';
import type { Route } from '../contract/route.ts';

export type ExecutionsApiParts = { db: Queryable; records: ExecutionRecords; feed: ExecutionFeed };

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/** `refused`: the plugin did not run, because a policy turned the caller away. */
export const OUTCOMES = [...OUTCOME_KINDS, 'refused'] as const;

const record = z
  .object({
    id,
    request_id: z.string(),
    trace_id: z.string().nullable().describe('Trace id of the caller (W3C trace context)'),
    plugin_id: z.string(),
    version: z.string(),
    trigger: z.string(),
    principal: z.string().describe('Who called: user:<id>, service:<id> or public'),
    outcome: z.enum(OUTCOMES),
    status: z.int().describe('The HTTP status the caller got; 0 where there was none'),
    started_at: time,
    queue_wait_ms: z.number(),
    run_ms: z.number(),
    host_calls: z.int(),
    peak_pages: z.int().describe('Most memory it had, in pages of 64 KiB'),
    failure: z.string().nullable(),
    log_lines: z.int(),
  })
  .meta({ id: 'Execution' });

const path = '/api/admin/plugins/:id/executions';

/** What a list and a stream can be narrowed to. */
const watched = {
  outcome: oneOf([...OUTCOMES, 'failed'], 'Only those that ended this way; failed: all but ok and refused'),
  trigger: text('Only those of this trigger'),
  principal: text('Only those of this caller: user:<id>, service:<id> or public'),
};
const filters = {
  ...watched,
  since,
  until,
  request_id: text('Only those of this request'),
  trace_id: text('Only those of this trace'),
};
const plugin = text('Only those of this plugin');

/** Execution records (docs/plugins.md "Records"). Those of an uninstalled plugin can still be read until they age out. */
export const executions = resource('Executions', 'Records of executions, with their log lines.', {
  list: {
    method: 'GET',
    path,
    guard: 'admin',
    key: ['read', 'operate', 'plugins:deploy'],
    summary: 'List executions of a plugin',
    query: listOf(filters),
    replies: { 200: pageOf(record) },
  },
  all: {
    method: 'GET',
    path: '/api/admin/executions',
    guard: 'admin',
    key: ['read', 'operate'],
    summary: 'List executions of all plugins',
    query: listOf({ plugin, ...filters }),
    replies: { 200: pageOf(record) },
  },
  stream: {
    method: 'GET',
    path: '/api/admin/executions/stream',
    guard: 'admin',
    key: ['read', 'operate'],
    summary: 'Watch executions as they are recorded',
    description: STREAM_ABOUT,
    query: z.strictObject({ plugin, ...watched, after }),
    replies: {
      200: {
        media: 'text/event-stream',
        description:
          'Server-sent events: id is the number of the execution, event its outcome, data the execution as in the list',
      },
    },
  },
  get: {
    method: 'GET',
    path: `${path}/:execution`,
    guard: 'admin',
    key: ['read', 'operate', 'plugins:deploy'],
    summary: 'Read an execution with its log',
    params: { execution: idParam('execution record') },
    replies: {
      200: record.extend({
        decision: recordedDecision
          .nullable()
          .describe(
            'How it was decided that the caller may, or not; null where nothing was recorded: a trigger without a policy, an erased person',
          ),
        log: z.array(z.object({ level: z.enum(LEVELS), text: z.string() })),
        recorded: z.boolean().describe('Whether it can be run again with plugin replay'),
      }),
    },
  },
  recording: {
    method: 'GET',
    path: `${path}/:execution/recording`,
    guard: 'admin',
    key: ['operate', 'plugins:deploy'],
    summary: 'Read what runs an execution again',
    description:
      'Of triggers with `record`: the event, the body, and each host call with its answer. Secrets and what is named as personal data are hidden.',
    params: { execution: idParam('execution record') },
    replies: { 200: recordedExecution },
  },
});

type Filters = {
  [K in 'plugin' | 'outcome' | 'trigger' | 'principal' | 'request_id' | 'trace_id']?: string | undefined;
} & { since?: Date | undefined; until?: Date | undefined };

function filterOf({ outcome, plugin, principal, request_id, since, trace_id, trigger, until }: Filters): RecordFilter {
  return present({ plugin, outcome, trigger, principal, since, until, requestId: request_id, traceId: trace_id });
}

const list: Handle<typeof executions.list, ExecutionsApiParts> = async ({ records }, { params, query }) => {
  const load = (before: number, limit: number) =>
    records.list({ ...filterOf(query), plugin: params.id }, before, limit);
  return { status: 200, json: await loadPage(query, load, recordJson) };
};

const all: Handle<typeof executions.all, ExecutionsApiParts> = async ({ records }, { query }) => {
  const load = (before: number, limit: number) => records.list(filterOf(query), before, limit);
  return { status: 200, json: await loadPage(query, load, recordJson) };
};

const stream: Handle<typeof executions.stream, ExecutionsApiParts> = ({ feed }, { isStillAllowed, query, request }) =>
  liveStream(feed, filterOf(query), request.headers['last-event-id'] ?? query.after, isStillAllowed);

const get: Handle<typeof executions.get, ExecutionsApiParts> = async ({ db, records }, { params }) => {
  const found = await records.find(params.id, params.execution);
  if (found === undefined)
    throw new ServiceError('not_found', `plugin "${params.id}" has no execution record ${params.execution}`);
  return {
    status: 200,
    json: {
      ...recordJson({ ...found, logLines: found.log.length }),
      decision: decisionJson(found.decision),
      log: found.log.map(l => ({ level: LEVELS[l.level] ?? 'info', text: l.text })),
      recorded: await isRecorded(db, params.id, params.execution),
    },
  };
};

const getRecording: Handle<typeof executions.recording, ExecutionsApiParts> = async ({ db, records }, context) => {
  const { caller, params, request } = context;
  const found = await findRecording(db, params.id, params.execution);
  if (found === undefined && (await records.find(params.id, params.execution)) === undefined)
    throw new ServiceError('not_found', `plugin "${params.id}" has no execution record ${params.execution}`);
  if (found === undefined)
    throw new ServiceError(
      'not_found',
      `execution ${params.execution} of plugin "${params.id}" has no recording; set "record" of its trigger, and call it again`,
    );
  await appendAudit(db, actorOf(caller, request), {
    action: 'execution.read_recording',
    objectType: 'plugin',
    objectId: params.id,
    after: { execution: params.execution },
  });
  return {
    status: 200,
    json: recordedExecution.parse(JSON.parse(found)),
    headers: [['Content-Disposition', `attachment; filename="recording-${params.id}-${params.execution}.json"`]],
  };
};

export const executionRoutes = (parts: ExecutionsApiParts): Route[] =>
  serve(executions, parts, { list, all, stream, get, recording: getRecording });

const thousandths = (n: number): number => Math.round(n * 1000) / 1000;

/** An execution as lists and streams show it. */
const writeRecord = replyWriter(record);
export const recordJson = (r: ListedRecord) =>
  writeRecord({
    ...r,
    traceId: r.traceId === '' ? null : r.traceId,
    failure: r.failure === '' ? null : r.failure,
    queueWaitMs: thousandths(r.queueWaitMs),
    runMs: thousandths(r.runMs),
  });
