import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import type { Database } from '../../db/database.ts';
import type { Request } from '../../http/message.ts';
import type { Starter } from '../../university/batch.ts';
import { ENTITIES, ENTITY_BY_TYPE, type Entity, type EntityType } from '../../university/entities.ts';
import {
  findImport,
  IMPORT_KINDS,
  type ImportedType,
  type ImportRun,
  type KeptError,
  listEnding,
  listImportErrors,
  listImports,
} from '../../university/import-log.ts';
import type { Imports } from '../../university/imports.ts';
import { RECORD_ERROR_CODES, recordSchema } from '../../university/parse-record.ts';
import { starterText } from '../../university/starter.ts';
import { actorOf, type Caller } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type CsvColumns, csvReply, csvTable } from '../contract/csv.ts';
import { type Answer, type Handle, type Input, routeOf, serve } from '../contract/endpoint.ts';
import { loadPage, pageOf } from '../contract/paging.ts';
import { idParam } from '../contract/params.ts';
import { flag, limit, list as listOf, noParameters, oneOf, page, text } from '../contract/query.ts';
import { receiveBody } from '../contract/receive-body.ts';
import type { Route } from '../contract/route.ts';
import { importRun, importRunJson } from './import-run.ts';
import { entityOf, type UniversityTypesApiParts, universityTypeRoutes } from './university-types-api.ts';

export type UniversityApiParts = UniversityTypesApiParts & { db: Database; imports: Imports };

const PREFIX = '/api/admin/university';
const LIST_LIMIT = { name: 'universityListBytesMax', bytes: LIMITS.universityListBytesMax };

const TYPES = ENTITIES.map(e => e.type);
const typeName = z.string().refine((name): name is EntityType => ENTITY_BY_TYPE.has(name as EntityType), {
  message: `must be one of ${TYPES.join(', ')}`,
});

const recordError = z
  .object({
    index: z.int().describe('Place in the list, from 0'),
    external_id: z.string().nullable(),
    field: z.string().nullable().describe('Path of the field in the record; null for the record as a whole'),
    code: z.enum(RECORD_ERROR_CODES),
    message: z.string(),
  })
  .meta({ id: 'RecordError' });

const batchResult = z
  .object({
    total: z.int(),
    success: z.int(),
    errors: z.array(recordError),
    errors_total: z
      .int()
      .optional()
      .describe('How many there are, when some are left out: the log of the import has them'),
  })
  .meta({ id: 'BatchResult' });

const endingRecord = z
  .object({
    external_id: z.string(),
    name: z.string().nullable().describe('Its name, or that of the person it is of; null when it has none'),
  })
  .meta({ id: 'EndingRecord' });

/** The batch import of one type of record (docs/university.md "Batches"). */
const batchContract = (entity: Entity) => ({
  method: 'POST' as const,
  path: `${PREFIX}/${entity.path}`,
  guard: 'import' as const,
  key: ['university'] as const,
  summary: `Import ${entity.path.replaceAll('-', ' ')}`,
  description:
    '200: all records were taken, 206: some, 422: none. What is wrong with a record stands in errors. The header X-Import-Id names the import in the log.',
  query: z.strictObject({ dry_run: flag('Report what would happen and write nothing') }),
  body: {
    media: 'application/json',
    description: 'The records',
    schema: z.array(recordSchema(entity)).max(LIMITS.universityRecordsMax),
  },
  replies: { 200: batchResult, 206: batchResult, 422: batchResult },
  refusals: ['validation_failed', 'storage_full'] as const,
});
type BatchContract = ReturnType<typeof batchContract>;

/** `teacher-positions` as the name of an endpoint: `teacherPositions`. */
const endpointName = (path: string): string => path.replace(/-(.)/g, (_, c: string) => c.toUpperCase());
const BATCHES = ENTITIES.map(entity => ({ entity, contract: batchContract(entity) }));

export const universityBatches = resource(
  'University data: batches',
  'The data of the university, sent as lists of records (docs/university.md).',
  Object.fromEntries(BATCHES.map(b => [endpointName(b.entity.path), b.contract])),
);

const params = { id: idParam('import') };
const KIND = { kind: oneOf(IMPORT_KINDS, 'Only batches, or only pulls') };
/** The log of imports is read with the key of imports too. */
const LOG = { method: 'GET', guard: 'import_log', key: ['read', 'university'] } as const;

/** Pulls and the log of imports (docs/university.md "Pulls"). */
export const universityImports = resource(
  'University data: pulls and imports',
  'Pulls from the source of the university, and the log of all imports.',
  {
    pull: {
      method: 'POST',
      path: `${PREFIX}/pull`,
      guard: 'import',
      key: ['university'],
      summary: 'Pull the data from the source now',
      query: z.strictObject({ wait: flag('Answer when the pull has ended') }),
      body: z
        .strictObject({
          release_brake: z
            .array(typeName)
            .default([])
            .describe('Types that may lose more than a fifth of their records in this pull'),
          ending_max: z
            .int()
            .min(0)
            .optional()
            .describe('Most records each of these types may lose; with more the brake stops it again'),
        })
        .prefault({}),
      idempotency: 'answer',
      replies: { 200: importRun, 202: importRun },
      refusals: ['conflict'],
      example: { query: 'wait=1', body: { release_brake: ['group'], ending_max: 12 } },
    },
    list: {
      ...LOG,
      path: `${PREFIX}/imports`,
      summary: 'List imports',
      query: listOf(KIND),
      replies: { 200: pageOf(importRun) },
    },
    table: {
      ...LOG,
      path: `${PREFIX}/imports.csv`,
      summary: 'Download the log of imports as a table',
      description: 'A line for each type of each import, newest first.',
      query: z.strictObject(KIND),
      replies: { 200: csvTable },
    },
    get: {
      ...LOG,
      path: `${PREFIX}/imports/:id`,
      summary: 'Read an import',
      params,
      replies: { 200: importRun },
    },
    errors: {
      ...LOG,
      path: `${PREFIX}/imports/:id/errors`,
      summary: 'List what was wrong with records of an import',
      params,
      query: page,
      replies: { 200: pageOf(recordError.extend({ type: z.enum(TYPES) })) },
    },
    errorsTable: {
      ...LOG,
      path: `${PREFIX}/imports/:id/errors.csv`,
      summary: 'Download what was wrong with records of an import as a table',
      params,
      query: noParameters,
      replies: { 200: csvTable },
    },
    ending: {
      ...LOG,
      // It names people.
      key: ['people', 'university'],
      path: `${PREFIX}/imports/:id/ending/:type`,
      summary: 'List the records that a stopped list would make inactive',
      description: `Of a type of a pull that the brake has stopped, in the order of their ids. The first ${LIMITS.importEndingKept} are kept; brake of the import says how many there are.`,
      params: { ...params, type: z.enum(TYPES) },
      query: z.strictObject({ limit, cursor: text('The next_cursor of the page before') }),
      replies: { 200: pageOf(endingRecord) },
    },
  },
);

async function batch(
  { imports }: UniversityApiParts,
  entity: Entity,
  { caller, query, request, source }: Input<BatchContract>,
): Promise<Answer<BatchContract>> {
  const { dry_run } = query;
  assertJson(request);
  return await receiveBody(source, imports.directory, LIST_LIMIT, async file => {
    const { counts, errors, errorsTotal, importId } = await imports.batch(
      entity,
      file,
      dry_run,
      starterOf(caller, request),
    );
    return {
      status: counts.failed === 0 ? 200 : counts.success > 0 ? 206 : 422,
      json: {
        total: counts.total,
        success: counts.success,
        errors,
        // Told only when some are left out: all that are kept are in the log.
        ...(errorsTotal > errors.length ? { errors_total: errorsTotal } : {}),
      },
      headers: importId === null ? [] : [['X-Import-Id', String(importId)]],
    };
  });
}

const pull: Handle<typeof universityImports.pull, UniversityApiParts> = async ({ db, imports }, input) => {
  const { wait } = input.query;
  const { ending_max, release_brake } = await input.body();
  const release = { types: release_brake, endingMax: ending_max };
  const { done, importId } = await imports.beginPull(starterOf(input.caller, input.request), release);
  if (wait) return { status: 200, json: importRunJson(await done) };
  const run = await findImport(db, importId);
  if (run === undefined) throw new Error(`import ${importId} is gone from the log`);
  return { status: 202, json: importRunJson(run), headers: [['Location', `${PREFIX}/imports/${importId}`]] };
};

const list: Handle<typeof universityImports.list, UniversityApiParts> = async ({ db }, { query }) => ({
  status: 200,
  json: await loadPage(query, (before, limit) => listImports(db, before, limit, query.kind), importRunJson),
});

/** A line of the table: a type of an import, or an import that has come to none. */
type LogLine = { run: ImportRun; type: ImportedType | null };
const LOG_COLUMNS: CsvColumns<LogLine> = [
  ['import', l => l.run.id],
  ['kind', l => l.run.kind],
  ['state', l => l.run.state],
  ['started_by', l => l.run.startedBy],
  ['started_at', l => l.run.startedAt],
  ['finished_at', l => l.run.finishedAt],
  ['problem', l => l.run.problem],
  ['type', l => l.type?.type],
  ['type_state', l => l.type?.state],
  ['total', l => l.type?.total],
  ['success', l => l.type?.success],
  ['created', l => l.type?.created],
  ['updated', l => l.type?.updated],
  ['deactivated', l => l.type?.deactivated],
  ['failed', l => l.type?.failed],
  ['type_problem', l => l.type?.problem],
];

const table: Handle<typeof universityImports.table, UniversityApiParts> = ({ db }, { isStillAllowed, query }) => {
  const load = async (last: LogLine | undefined, limit: number) => {
    const runs = await listImports(db, last?.run.id ?? Number.MAX_SAFE_INTEGER, limit, query.kind);
    return runs.flatMap((run): LogLine[] =>
      run.types.length === 0 ? [{ run, type: null }] : run.types.map(type => ({ run, type })),
    );
  };
  return csvReply('imports', LOG_COLUMNS, load, isStillAllowed);
};

const get: Handle<typeof universityImports.get, UniversityApiParts> = async ({ db }, { params }) => ({
  status: 200,
  json: importRunJson(await loadRun(db, params.id)),
});

const errors: Handle<typeof universityImports.errors, UniversityApiParts> = async ({ db }, { params, query }) => {
  const run = await loadRun(db, params.id);
  // In the order of the records, so that the cursor goes up.
  const rows = await listImportErrors(db, run.id, query.cursor ?? 0, query.limit + 1);
  const shown = rows.slice(0, query.limit);
  return {
    status: 200,
    json: {
      items: shown.map(({ id: _, ...e }) => e),
      next_cursor: rows.length > query.limit ? String(shown.at(-1)?.id) : null,
    },
  };
};

const ERROR_COLUMNS: CsvColumns<KeptError> = [
  ['type', e => e.type],
  ['index', e => e.index],
  ['external_id', e => e.external_id],
  ['field', e => e.field],
  ['code', e => e.code],
  ['message', e => e.message],
];

const errorsTable: Handle<typeof universityImports.errorsTable, UniversityApiParts> = async (
  { db },
  { isStillAllowed, params },
) => {
  const run = await loadRun(db, params.id);
  const load = (last: KeptError | undefined, limit: number) => listImportErrors(db, run.id, last?.id ?? 0, limit);
  return csvReply(`import-${run.id}-errors`, ERROR_COLUMNS, load, isStillAllowed);
};

const ending: Handle<typeof universityImports.ending, UniversityApiParts> = async ({ db }, { params, query }) => {
  const run = await loadRun(db, params.id);
  const { cursor = '', limit } = query;
  const rows = await listEnding(db, run.id, entityOf(params.type), cursor, limit + 1);
  const shown = rows.slice(0, limit);
  return {
    status: 200,
    json: {
      items: shown.map(({ externalId, name }) => ({ external_id: externalId, name })),
      next_cursor: rows.length > limit ? (shown.at(-1)?.externalId ?? null) : null,
    },
  };
};

export const universityRoutes = (parts: UniversityApiParts): Route[] => [
  ...BATCHES.map(({ contract, entity }) => routeOf(contract, input => batch(parts, entity, input))),
  ...serve(universityImports, parts, { pull, list, table, get, errors, errorsTable, ending }),
  ...universityTypeRoutes(parts),
];

async function loadRun(db: Database, importId: number): Promise<ImportRun> {
  const run = await findImport(db, importId);
  if (run === undefined) throw new ServiceError('not_found', `there is no import ${importId}`);
  return run;
}

/** Who stands in the log of imports and in the audit log. */
function starterOf(caller: Caller, request: Request): Starter {
  const actor = actorOf(caller, request);
  return { name: starterText(actor), actor };
}

function assertJson(request: Request): void {
  const type = request.headers['content-type'] ?? '';
  if (!/^application\/json\s*(;|$)/i.test(type))
    throw new ServiceError(
      'unsupported_media_type',
      `the body must be application/json, not ${type === '' ? 'untyped' : JSON.stringify(type.slice(0, 100))}`,
    );
}
