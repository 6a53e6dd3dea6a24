import { z } from 'zod';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import { jsonReply, type Request } from '../http/message.ts';
import { ENTITIES, ENTITY_BY_TYPE, type Entity, type EntityType } from '../university/entities.ts';
import { findImport, type ImportRun, listImportErrors, listImports } from '../university/import-log.ts';
import type { Imports } from '../university/imports.ts';
import { parseBody } from './body.ts';
import { receiveBody } from './receive-body.ts';
import { type Caller, flagOf, limitOf, pageReply, pathIdOf, queryOf, type Route, type RouteInput } from './route.ts';

export type UniversityApiParts = { db: Database; imports: Imports };

const PREFIX = '/api/admin/university';
const LIST_LIMIT = { name: 'universityListBytesMax', bytes: LIMITS.universityListBytesMax };

const typeName = z.string().refine(name => ENTITY_BY_TYPE.has(name as EntityType), {
  message: `must be one of ${ENTITIES.map(e => e.type).join(', ')}`,
});
const pullBody = z.strictObject({ release_brake: z.array(typeName).default([]) });

/** Who stands in the log of imports. */
function starterOf(caller: Caller): string {
  if (caller.kind === 'admin') return caller.account.email;
  if (caller.kind === 'admin_key') return `administration key "${caller.key.name}"`;
  return caller.kind === 'api_key' ? 'admin.api_key' : 'setup mode';
}

const runJson = (r: ImportRun) => ({
  id: r.id,
  kind: r.kind,
  state: r.state,
  started_by: r.startedBy,
  started_at: r.startedAt,
  finished_at: r.finishedAt,
  problem: r.problem,
  types: r.types.map(({ finishedAt, startedAt, ...t }) => ({ ...t, started_at: startedAt, finished_at: finishedAt })),
});

function assertJson(request: Request): void {
  const type = request.headers['content-type'] ?? '';
  if (!/^application\/json\s*(;|$)/i.test(type))
    throw new ServiceError(
      'unsupported_media_type',
      `the body must be application/json, not ${type === '' ? 'untyped' : JSON.stringify(type.slice(0, 100))}`,
    );
}

/** Batch import, pulls and the log of imports (docs/university.md "Batches", docs/university.md "Types"). */
export function universityRoutes({ db, imports }: UniversityApiParts): Route[] {
  const batch = (entity: Entity): Route => ({
    method: 'POST',
    path: `${PREFIX}/${entity.path}`,
    guard: 'import',
    key: ['university'],
    async handle({ body, caller, request }) {
      const dryRun = flagOf(queryOf(request, ['dry_run']), 'dry_run');
      assertJson(request);
      return await receiveBody(body, imports.directory, LIST_LIMIT, async file => {
        const { counts, errors, errorsTotal, importId } = await imports.batch(entity, file, dryRun, starterOf(caller));
        const status = counts.failed === 0 ? 200 : counts.success > 0 ? 206 : 422;
        return jsonReply(
          status,
          {
            total: counts.total,
            success: counts.success,
            errors,
            // Told only when some are left out: all that are kept are in the log.
            ...(errorsTotal > errors.length ? { errors_total: errorsTotal } : {}),
          },
          importId === null ? [] : [['X-Import-Id', String(importId)]],
        );
      });
    },
  });
  const runOf = async ({ request }: RouteInput): Promise<ImportRun> => {
    const id = pathIdOf(request, 'id');
    const run = id === undefined ? undefined : await findImport(db, id);
    if (run === undefined) throw new ServiceError('not_found', `there is no import ${request.params.id}`);
    return run;
  };
  return [
    ...ENTITIES.map(batch),
    {
      method: 'POST',
      path: `${PREFIX}/pull`,
      guard: 'import',
      key: ['university'],
      async handle({ caller, json, request }) {
        const wait = flagOf(queryOf(request, ['wait']), 'wait');
        const hasBody = request.headers['content-length'] !== '0' && request.headers['content-type'] !== undefined;
        const body = parseBody(pullBody, hasBody ? await json() : {});
        const { done, importId } = await imports.beginPull(starterOf(caller), body.release_brake as EntityType[]);
        if (wait) return jsonReply(200, runJson(await done));
        const run = await findImport(db, importId);
        if (run === undefined) throw new Error(`import ${importId} is gone from the log`);
        return jsonReply(202, runJson(run), [['Location', `${PREFIX}/imports/${importId}`]]);
      },
    },
    {
      method: 'GET',
      path: `${PREFIX}/imports`,
      guard: 'import_log',
      key: ['read', 'university'],
      handle: ({ request }) =>
        pageReply(queryOf(request, ['limit', 'cursor']), (before, limit) => listImports(db, before, limit), runJson),
    },
    {
      method: 'GET',
      path: `${PREFIX}/imports/:id`,
      guard: 'import_log',
      key: ['read', 'university'],
      handle: async input => jsonReply(200, runJson(await runOf(input))),
    },
    {
      method: 'GET',
      path: `${PREFIX}/imports/:id/errors`,
      guard: 'import_log',
      key: ['read', 'university'],
      async handle(input) {
        const run = await runOf(input);
        const query = queryOf(input.request, ['limit', 'cursor']);
        const limit = limitOf(query);
        const cursor = query.get('cursor') ?? '0';
        if (!/^\d{1,15}$/.test(cursor))
          throw new ServiceError('validation_failed', 'cursor must be the next_cursor of the page before', {
            errors: [{ pointer: 'query:cursor', message: 'must be the next_cursor of the page before' }],
          });
        const rows = await listImportErrors(db, run.id, Number(cursor), limit + 1);
        const page = rows.slice(0, limit);
        return jsonReply(200, {
          items: page.map(({ id: _, ...e }) => e),
          next_cursor: rows.length > limit ? String(page.at(-1)?.id) : null,
        });
      },
    },
  ];
}
