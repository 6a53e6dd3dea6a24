import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import type { Database } from '../../db/database.ts';
import { type Connected, tryConnection } from '../../db/plugin-databases.ts';
import { connectionProblem } from '../../plugins/plugin-config.ts';
import type { PluginRegistry } from '../../plugins/registry.ts';
import { assertHasScope } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import type { Route } from '../contract/route.ts';
import { loadPlugin } from './plugin-detail.ts';

type DatabasesApiParts = { db: Database; registry: PluginRegistry };

const testBody = z.strictObject({
  name: z.string().min(1).max(64).default('default').describe('Logical name of the database in the manifest'),
  connection_string: z
    .string()
    .max(4096)
    .regex(/^postgres(ql)?:\/\//, 'must be a connection string like postgresql://user:password@host:5432/database')
    .describe('What to try; without it the one that is installed under the name')
    .optional(),
});

const latency = z.int().nonnegative();

const connectionFailure = z
  .object({ code: z.string().describe('SQLSTATE, or the error code of the system'), message: z.string() })
  .meta({ id: 'ConnectionFailure' });

const trial = z
  .discriminatedUnion('ok', [
    z.object({
      ok: z.literal(true),
      latency_ms: latency,
      server_version: z.string(),
      database: z.string(),
      user: z.string(),
      warnings: z.array(z.string()).describe('What an administrator should think about'),
    }),
    z.object({
      ok: z.literal(false),
      latency_ms: latency,
      error: connectionFailure,
    }),
  ])
  .meta({ id: 'ConnectionTrial' });

/** Trying the databases of plugins, before and after an installation. */
export const databases = resource(
  'Databases of plugins',
  'Trying the databases of a plugin, before and after its installation.',
  {
    test: {
      method: 'POST',
      path: '/api/admin/plugins/:id/databases/test',
      guard: 'admin_recent',
      key: ['plugins:deploy'],
      skipChangeBarrier: true,
      summary: 'Try the connection to a database of a plugin',
      description:
        'It connects as the plugin would. A connection that fails is an answer with ok: false. Besides plugins:deploy it needs plugins:accept.',
      body: testBody,
      replies: { 200: trial },
      example: { body: { name: 'default', connection_string: 'postgresql://user:password@db.example.org:5432/shop' } },
    },
  },
);

const test: Handle<typeof databases.test, DatabasesApiParts> = async ({ db, registry }, { body, caller, params }) => {
  await loadPlugin(db, params.id);
  const { connection_string, name } = await body();
  assertHasScope(caller, 'plugins:accept', 'trying a database');
  const problem = connection_string === undefined ? null : connectionProblem(connection_string);
  if (problem !== null)
    throw new ServiceError('validation_failed', `connection_string ${problem}`, {
      errors: [{ pointer: '/connection_string', message: problem, code: 'malformed' }],
    });
  const stored = registry.find(params.id)?.databases ?? {};
  const url = connection_string ?? (Object.hasOwn(stored, name) ? stored[name] : undefined);
  if (url === undefined) {
    const names = Object.keys(stored).join(', ') || 'none';
    throw new ServiceError(
      'validation_failed',
      `no connection string is installed for the database "${name}"; give one to try`,
      { errors: [{ pointer: '/name', message: `is not installed; installed are: ${names}`, code: 'not_one_of' }] },
    );
  }
  return { status: 200, json: trialJson(await tryConnection(db, url)) };
};

export const databaseRoutes = (parts: DatabasesApiParts): Route[] => serve(databases, parts, { test });

/** What a trial has found, with what an administrator should think about. */
function trialJson(c: Connected): z.input<typeof trial> {
  if (!c.ok) return { ok: false, latency_ms: c.latencyMs, error: { code: c.code, message: c.message } };
  const warnings = [
    ...(c.isSuperuser ? [`the role "${c.user}" is a superuser: give the plugin one that may only what it needs`] : []),
    ...(c.isEncrypted ? [] : ['the connection is not encrypted; add sslmode=require if it leaves this machine']),
    ...(c.isOurs ? ['this is the database of the service itself: the plugin could read and change everything'] : []),
  ];
  const { database, latencyMs, server, user } = c;
  return { ok: true, latency_ms: latencyMs, server_version: server, database, user, warnings };
}
