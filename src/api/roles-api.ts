import { changeGraphRole, type GraphRole, listGraphRoles } from '../authz/graph-roles.ts';
import { grantWarning, graphGrantWarning } from '../authz/role-warnings.ts';
import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import { jsonReply, type Reply } from '../http/message.ts';
import {
  grantUserRole,
  listRoleHolders,
  listRoleNames,
  listUserRoles,
  revokeUserRole,
} from '../identity/user-roles.ts';
import { findUser, type GlobalUser } from '../identity/users.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { PluginRegistry } from '../plugins/registry.ts';
import { idOf } from './auth-api.ts';
import { roleName } from './commands-api.ts';
import { actorOf, pageReply, queryOf, type Route, type RouteInput } from './route.ts';

export type RolesApiParts = { db: Database; schema: GraphSchema; outbox: Outbox; registry: PluginRegistry };

const KINDS = ['database', 'system', 'global', 'plugin'] as const;

/** What a path names: `database/editor`, `system/admin`, `global/tutor`, `plugin/<plugin>/editor`. */
type NamedRole = { kind: 'database'; role: string } | GraphRole;

const roleJson = (r: GraphRole) =>
  r.kind === 'plugin' ? { kind: r.kind, plugin_id: r.pluginId, role: r.role } : { kind: r.kind, role: r.role };

const oddities = (message: string | null) => (message === null ? [] : [{ pointer: 'path:role', message }]);

/** Roles of users: those policies ask for, and those of commands (docs/authorization.md "What a policy knows", docs/authorization.md "Commands"). */
export function roleRoutes({ db, outbox, registry, schema }: RolesApiParts): Route[] {
  const path = '/api/admin/users/:user/roles';
  const load = async ({ request }: RouteInput): Promise<GlobalUser> => {
    const user = await findUser(db, idOf(request, 'user'));
    if (user === undefined) throw new ServiceError('not_found', `there is no user ${request.params.user}`);
    return user;
  };
  const named = ({ request }: RouteInput): NamedRole => {
    const { kind, plugin, role = '' } = request.params;
    const parsed = roleName.safeParse(role);
    if (!parsed.success) {
      const message = parsed.error.issues[0]?.message ?? 'is no role';
      throw new ServiceError('validation_failed', `role "${role}" ${message}`, {
        errors: [{ pointer: 'path:role', message }],
      });
    }
    if (plugin !== undefined) {
      if (registry.find(plugin) === undefined)
        throw new ServiceError('not_found', `plugin "${plugin}" is not installed`);
      return { kind: 'plugin', pluginId: plugin, role };
    }
    if (kind === 'database' || kind === 'system' || kind === 'global') return { kind, role };
    const message =
      kind === 'plugin' ? 'needs the plugin: roles/plugin/<plugin>/<role>' : `must be one of ${KINDS.join(', ')}`;
    throw new ServiceError('validation_failed', `kind "${kind}" ${message}`, {
      errors: [{ pointer: 'path:kind', message }],
    });
  };
  const graphUser = (user: GlobalUser): { id: number; externalId: string } => {
    if (user.externalId !== null) return { id: user.id, externalId: user.externalId };
    throw new ServiceError(
      'conflict',
      `user ${user.id} has no external_id, by which the graph knows people; set one first: PATCH /api/admin/users/${user.id}`,
    );
  };
  const change = async (input: RouteInput, give: boolean): Promise<Reply> => {
    const [user, role] = [await load(input), named(input)];
    const by = actorOf(input.caller, input.request);
    if (role.kind === 'database') {
      const changed = give
        ? await grantUserRole(db, user.id, role.role, by)
        : await revokeUserRole(db, user.id, role.role, by);
      const warnings = oddities(give ? await grantWarning(db, user.id, role.role) : null);
      return jsonReply(200, { user: user.id, ...role, granted: give, changed, delivered: true, warnings });
    }
    const holder = graphUser(user);
    const appended = await changeGraphRole(db, schema, holder, role, give, by);
    return jsonReply(200, {
      user: user.id,
      ...roleJson(role),
      granted: give,
      changed: appended !== null,
      delivered: appended === null || (await outbox.settled(appended, LIMITS.deliveryWaitMs)),
      warnings: oddities(give ? await graphGrantWarning(db, holder.externalId, role) : null),
    });
  };
  const put = (where: string): Route => ({
    method: 'PUT',
    path: `${path}${where}`,
    guard: 'admin_recent',
    key: ['access'],
    handle: input => change(input, true),
  });
  const remove = (where: string): Route => ({
    method: 'DELETE',
    path: `${path}${where}`,
    guard: 'admin_recent',
    key: ['access'],
    handle: input => change(input, false),
  });

  return [
    {
      method: 'GET',
      path,
      guard: 'admin',
      key: ['read', 'access'],
      async handle(input) {
        const user = await load(input);
        const [own, graph] = await Promise.all([
          listUserRoles(db, user.id),
          user.externalId === null ? [] : listGraphRoles(db, user.externalId),
        ]);
        return jsonReply(200, {
          items: [
            ...own.map(r => ({
              kind: 'database',
              role: r.role,
              origin: r.origin,
              granted_at: r.grantedAt,
              granted_by: r.grantedBy,
            })),
            ...graph.map(roleJson),
          ],
          next_cursor: null,
        });
      },
    },
    put('/:kind/:role'),
    put('/plugin/:plugin/:role'),
    remove('/:kind/:role'),
    remove('/plugin/:plugin/:role'),
    {
      method: 'GET',
      path: '/api/admin/roles',
      guard: 'admin',
      key: ['read', 'access'],
      async handle() {
        return jsonReply(200, { items: await listRoleNames(db), next_cursor: null });
      },
    },
    {
      method: 'GET',
      path: '/api/admin/roles/:role/users',
      guard: 'admin',
      key: ['read', 'access'],
      handle: ({ request }) =>
        pageReply(
          queryOf(request, ['limit', 'cursor']),
          async (before, limit) =>
            (await listRoleHolders(db, request.params.role ?? '', before, limit)).map(r => ({ id: r.userId, ...r })),
          r => ({ user: r.userId, role: r.role, origin: r.origin, granted_at: r.grantedAt, granted_by: r.grantedBy }),
        ),
    },
  ];
}
