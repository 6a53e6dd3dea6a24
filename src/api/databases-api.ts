import { z } from 'zod';
import { ServiceError } from '../base/errors.ts';
import type { Database } from '../db/database.ts';
import { type Connected, tryConnection } from '../db/plugin-databases.ts';
import { jsonReply } from '../http/message.ts';
import { unknownPlugin } from '../plugins/install.ts';
import { connectionProblem } from '../plugins/plugin-config.ts';
import { findPlugin } from '../plugins/plugin-store.ts';
import type { PluginRegistry } from '../plugins/registry.ts';
import { parseBody } from './body.ts';
import type { Route } from './route.ts';

const testBody = z.strictObject({
  name: z.string().min(1).max(64).default('default'),
  connection_string: z
    .string()
    .max(4096)
    .regex(/^postgres(ql)?:\/\//, 'must be a connection string like postgresql://user:password@host:5432/database')
    .optional(),
});

/** What a trial has found, with what an administrator should think about. */
function resultJson(c: Connected) {
  if (!c.ok) return { ok: false, latency_ms: c.latencyMs, error: { code: c.code, message: c.message } };
  const warnings = [
    ...(c.isSuperuser ? [`the role "${c.user}" is a superuser: give the plugin one that may only what it needs`] : []),
    ...(c.isEncrypted ? [] : ['the connection is not encrypted; add sslmode=require if it leaves this machine']),
    ...(c.isOurs ? ['this is the database of the service itself: the plugin could read and change everything'] : []),
  ];
  const { database, latencyMs, server, user } = c;
  return { ok: true, latency_ms: latencyMs, server_version: server, database, user, warnings };
}

/** Trying the databases of plugins, before and after an installation. */
export function databaseRoutes(parts: { db: Database; registry: PluginRegistry }): Route[] {
  const { db, registry } = parts;
  return [
    {
      method: 'POST',
      path: '/api/admin/plugins/:id/databases/test',
      guard: 'admin_recent',
      key: ['admin'],
      skipChangeBarrier: true,
      async handle({ json, request }) {
        const id = request.params.id ?? '';
        if ((await findPlugin(db, id)) === undefined) throw unknownPlugin(id);
        const { connection_string, name } = parseBody(testBody, await json());
        const problem = connection_string === undefined ? null : connectionProblem(connection_string);
        if (problem !== null)
          throw new ServiceError('validation_failed', `connection_string ${problem}`, {
            errors: [{ pointer: '/connection_string', message: problem }],
          });
        const stored = registry.find(id)?.databases ?? {};
        const url = connection_string ?? (Object.hasOwn(stored, name) ? stored[name] : undefined);
        if (url === undefined) {
          const names = Object.keys(stored).join(', ') || 'none';
          throw new ServiceError(
            'validation_failed',
            `no connection string is installed for the database "${name}"; give one to try`,
            { errors: [{ pointer: '/name', message: `is not installed; installed are: ${names}` }] },
          );
        }
        return jsonReply(200, resultJson(await tryConnection(db, url)));
      },
    },
  ];
}
