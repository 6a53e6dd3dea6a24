import { z } from 'zod';
import type { Actor } from '../../audit/audit-log.ts';
import { changeGraphRole, type GraphRole, listGraphRoles } from '../../authz/graph-roles.ts';
import { grantWarning, graphGrantWarning } from '../../authz/role-warnings.ts';
import { ServiceError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import type { Database } from '../../db/database.ts';
import type { GraphSchema } from '../../graph/graph-schema.ts';
import { findUser, type GlobalUser } from '../../identity/find-users.ts';
import { grantUserRole, listUserRoles, revokeUserRole } from '../../identity/user-roles.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import type { PluginRegistry } from '../../plugins/registry.ts';
import { actorOf } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { id, roleName, time, warning } from '../contract/fields.ts';
import { describeAs } from '../contract/json-schema.ts';
import { pageOf, wholePage } from '../contract/paging.ts';
import { idParam } from '../contract/params.ts';
import { noParameters } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';

export type UserRolesApiParts = { db: Database; schema: GraphSchema; outbox: Outbox; registry: PluginRegistry };

export const ROLE_KINDS = ['database', 'system', 'global', 'plugin'] as const;

export const roleOrigin = z.enum(['import', 'manual']).describe('import: university data gave it, and takes it away');

const userRole = z
  .discriminatedUnion('kind', [
    z.object({
      kind: z.literal('database').describe('What policies ask for with has_role'),
      role: z.string(),
      origin: roleOrigin,
      granted_at: time,
      granted_by: z.string(),
    }),
    z.object({
      kind: z.enum(['system', 'global']).describe('What commands ask for'),
      role: z.string(),
      origin: roleOrigin,
      granted_at: time,
    }),
    z.object({
      kind: z.literal('plugin'),
      plugin_id: z.string(),
      role: z.string(),
      origin: roleOrigin,
      granted_at: time,
    }),
  ])
  .meta({ id: 'UserRole' });

const changed = z
  .object({
    user: id,
    kind: z.enum(ROLE_KINDS),
    plugin_id: z.string().optional().describe('Of a role of the kind plugin'),
    role: z.string(),
    granted: z.boolean().describe('Whether the user has it now'),
    changed: z.boolean().describe('Whether this request changed anything'),
    delivered: z.boolean().describe('Whether the graph store has the change already'),
    warnings: z.array(warning),
  })
  .meta({ id: 'UserRoleChange' });

const path = '/api/admin/users/:user/roles';
const named = `${path}/:kind/:role`;
const ofPlugin = `${path}/plugin/:plugin/:role`;
const user = idParam('user');
// A wrong one is refused with 422, which says what would be right: these are no ids of things that could be missing.
const role = describeAs(z.string(), {
  type: 'string',
  minLength: 1,
  maxLength: 100,
  description: 'Letters, digits, _ . : and -',
});
const kind = describeAs(z.string(), { type: 'string', enum: ['database', 'system', 'global'] });

const CHANGE = {
  guard: 'admin_recent',
  key: ['access'],
  replies: { 200: changed },
  refusals: ['validation_failed', 'conflict'],
} as const;

/** Roles of users: those policies ask for, and those of commands (docs/authorization.md "What a policy knows", docs/authorization.md "Commands"). */
export const userRoles = resource('Roles of users', 'Roles of one user.', {
  list: {
    method: 'GET',
    path,
    guard: 'admin',
    key: ['people', 'access'],
    summary: 'List the roles of a user',
    query: noParameters,
    params: { user },
    replies: { 200: pageOf(userRole) },
  },
  grant: { method: 'PUT', path: named, ...CHANGE, summary: 'Give a user a role', params: { user, kind, role } },
  grantOfPlugin: {
    method: 'PUT',
    path: ofPlugin,
    ...CHANGE,
    summary: 'Give a user a role of a plugin',
    params: { user, role },
  },
  revoke: {
    method: 'DELETE',
    path: named,
    ...CHANGE,
    summary: 'Take a role from a user',
    params: { user, kind, role },
  },
  revokeOfPlugin: {
    method: 'DELETE',
    path: ofPlugin,
    ...CHANGE,
    summary: 'Take a role of a plugin from a user',
    params: { user, role },
  },
});

type Endpoints = typeof userRoles;

const list: Handle<Endpoints['list'], UserRolesApiParts> = async ({ db }, { params }) => {
  const found = await load(db, params.user);
  const [own, graph] = await Promise.all([
    listUserRoles(db, found.id),
    found.externalId === null ? [] : listGraphRoles(db, found.externalId),
  ]);
  const databaseRoles = own.map(r => ({
    kind: 'database' as const,
    role: r.role,
    origin: r.origin,
    granted_at: r.grantedAt,
    granted_by: r.grantedBy,
  }));
  const graphRoles = graph.map(r => ({ ...roleJson(r), origin: r.origin, granted_at: r.grantedAt }));
  return { status: 200, json: wholePage([...databaseRoles, ...graphRoles]) };
};

const grant: Handle<Endpoints['grant'], UserRolesApiParts> = async (parts, { caller, params, request }) => ({
  status: 200,
  json: await change(parts, params, true, actorOf(caller, request)),
});

const grantOfPlugin: Handle<Endpoints['grantOfPlugin'], UserRolesApiParts> = async (parts, input) => ({
  status: 200,
  json: await change(parts, input.params, true, actorOf(input.caller, input.request)),
});

const revoke: Handle<Endpoints['revoke'], UserRolesApiParts> = async (parts, { caller, params, request }) => ({
  status: 200,
  json: await change(parts, params, false, actorOf(caller, request)),
});

const revokeOfPlugin: Handle<Endpoints['revokeOfPlugin'], UserRolesApiParts> = async (parts, input) => ({
  status: 200,
  json: await change(parts, input.params, false, actorOf(input.caller, input.request)),
});

export const userRoleRoutes = (parts: UserRolesApiParts): Route[] =>
  serve(userRoles, parts, { list, grant, grantOfPlugin, revoke, revokeOfPlugin });

/** What a path names: `database/editor`, `system/admin`, `global/tutor`, `plugin/<plugin>/editor`. */
type NamedRole = { kind: 'database'; role: string } | GraphRole;
type RolePath = { user: number; role: string } & ({ kind: string } | { plugin: string });

async function change(parts: UserRolesApiParts, path: RolePath, give: boolean, by: Actor) {
  const { db, outbox, registry, schema } = parts;
  const [user, role] = [await load(db, path.user), namedRole(registry, path)];
  if (role.kind === 'database') {
    const changed = give
      ? await grantUserRole(db, user.id, role.role, by)
      : await revokeUserRole(db, user.id, role.role, by);
    const warnings = oddities(give ? await grantWarning(db, user.id, role.role) : null);
    return { user: user.id, ...role, granted: give, changed, delivered: true, warnings };
  }
  const holder = graphUser(user);
  const appended = await changeGraphRole(db, schema, holder, role, give, by);
  return {
    user: user.id,
    ...roleJson(role),
    granted: give,
    changed: appended !== null,
    delivered: appended === null || (await outbox.settled(appended, LIMITS.deliveryWaitMs)),
    warnings: oddities(give ? await graphGrantWarning(db, holder.externalId, role) : null),
  };
}

/** @throws ServiceError `validation_failed` naming the segment of the path, `not_found` for a plugin that is not there */
function namedRole(registry: PluginRegistry, path: RolePath): NamedRole {
  const { role } = path;
  const parsed = roleName.safeParse(role);
  if (!parsed.success) {
    const message = parsed.error.issues[0]?.message ?? 'is no role';
    throw new ServiceError('validation_failed', `role "${role}" ${message}`, {
      errors: [{ pointer: 'path:role', message, code: 'malformed' }],
    });
  }
  if ('plugin' in path) {
    if (registry.find(path.plugin) === undefined)
      throw new ServiceError('not_found', `plugin "${path.plugin}" is not installed`);
    return { kind: 'plugin', pluginId: path.plugin, role };
  }
  const { kind } = path;
  if (kind === 'database' || kind === 'system' || kind === 'global') return { kind, role };
  const message =
    kind === 'plugin' ? 'needs the plugin: roles/plugin/<plugin>/<role>' : `must be one of ${ROLE_KINDS.join(', ')}`;
  throw new ServiceError('validation_failed', `kind "${kind}" ${message}`, {
    errors: [{ pointer: 'path:kind', message, code: 'not_one_of' }],
  });
}

async function load(db: Database, id: number): Promise<GlobalUser> {
  const user = await findUser(db, id);
  if (user === undefined) throw new ServiceError('not_found', `there is no user ${id}`);
  return user;
}

function graphUser(user: GlobalUser): { id: number; externalId: string } {
  if (user.externalId !== null) return { id: user.id, externalId: user.externalId };
  throw new ServiceError(
    'conflict',
    `user ${user.id} has no external_id, by which the graph knows people; set one first: PATCH /api/admin/users/${user.id}`,
  );
}

const roleJson = (r: GraphRole) =>
  r.kind === 'plugin' ? { kind: r.kind, plugin_id: r.pluginId, role: r.role } : { kind: r.kind, role: r.role };

const oddities = (message: string | null) => (message === null ? [] : [{ pointer: 'path:role', message }]);
