import { z } from 'zod';
import {
  type GraphRole,
  type GraphRoleHolder,
  listGraphRoleHolders,
  listGraphRoleNames,
} from '../../authz/graph-roles.ts';
import { ServiceError } from '../../base/errors.ts';
import { listRoleHolders, listRoleNames, type RoleHolder } from '../../identity/user-roles.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { id, time } from '../contract/fields.ts';
import { loadPage, pageOf, wholePage } from '../contract/paging.ts';
import { list as listOf, text } from '../contract/query.ts';
import { replyWriter } from '../contract/reply-writer.ts';
import type { Route } from '../contract/route.ts';
import { ROLE_KINDS, roleOrigin, type UserRolesApiParts, userRoleRoutes } from './user-roles-api.ts';

export type RolesApiParts = UserRolesApiParts;

const path = '/api/admin/roles';
const READ = { method: 'GET', guard: 'admin' } as const;
const kind = z
  .enum(ROLE_KINDS)
  .default('database')
  .describe('database: roles that policies ask for with has_role; the others are those that commands ask for');
const KINDS = { kind };

/** Roles of the database, which policies ask for (docs/authorization.md "What a policy knows"), and those of commands. */
const holder = z
  .object({
    user: id,
    display_name: z.string(),
    external_id: z.string().nullable(),
    role: z.string(),
    origin: roleOrigin,
    granted_at: time,
    granted_by: z.string().nullable().describe('Null for roles of commands'),
  })
  .meta({ id: 'RoleHolder' });
const writeHolder = replyWriter(holder);

export const roles = resource('Roles', 'Roles that are used, and who holds them.', {
  list: {
    ...READ,
    key: ['read', 'access'],
    path,
    summary: 'List the roles that users have, and those that imports give',
    description: 'Of the kinds system, global and plugin there are 1,000 at most.',
    query: z.strictObject(KINDS),
    replies: {
      200: pageOf(
        z
          .object({
            role: z.string(),
            plugin_id: z.string().optional().describe('Of a role of the kind plugin'),
            holders: z.int().nonnegative().describe('How many users have it'),
            imported: z.boolean().describe('Whether imports of university data give it'),
          })
          .meta({ id: 'Role' }),
      ),
    },
  },
  holders: {
    ...READ,
    key: ['people', 'access'],
    path: `${path}/:role/users`,
    summary: 'List the users who have a role',
    query: listOf({ ...KINDS, plugin: text('Id of the plugin whose role it is; of the kind plugin alone') }),
    replies: {
      200: pageOf(holder),
    },
  },
});

const list: Handle<typeof roles.list, RolesApiParts> = async ({ db }, { query: { kind } }) => {
  if (kind === 'database') return { status: 200, json: wholePage(await listRoleNames(db)) };
  const found = await listGraphRoleNames(db, kind);
  const items = found.map(r => ({
    ...{ role: r.role, holders: r.holders, imported: r.imported },
    ...(r.kind === 'plugin' ? { plugin_id: r.pluginId } : {}),
  }));
  return { status: 200, json: wholePage(items) };
};

/**
 * The role of a command that a query names; null for one of the database.
 *
 * @throws ServiceError `validation_failed` when a plugin is missing, or named for a role that is of none
 */
function graphRole(role: string, kind: (typeof ROLE_KINDS)[number], plugin: string | undefined): GraphRole | null {
  const isOfPlugin = kind === 'plugin';
  if (isOfPlugin === (plugin === undefined)) {
    const message = isOfPlugin ? 'is needed with kind=plugin' : 'goes with kind=plugin alone';
    throw new ServiceError('validation_failed', `plugin ${message}`, {
      errors: [{ pointer: 'query:plugin', message, code: isOfPlugin ? 'missing' : 'not_accepted' }],
    });
  }
  if (plugin !== undefined) return { kind: 'plugin', pluginId: plugin, role };
  return kind === 'system' || kind === 'global' ? { kind, role } : null;
}

const holders: Handle<typeof roles.holders, RolesApiParts> = async ({ db }, { params: { role }, query }) => {
  const of = graphRole(role, query.kind, query.plugin);
  const load = (before: number, limit: number): Promise<Array<RoleHolder | GraphRoleHolder>> =>
    of === null ? listRoleHolders(db, role, before, limit) : listGraphRoleHolders(db, of, before, limit);
  return { status: 200, json: await loadPage(query, load, h => writeHolder({ ...h, user: h.id, role })) };
};

/** Roles of users, and who has which. */
export const roleRoutes = (parts: RolesApiParts): Route[] => [
  ...userRoleRoutes(parts),
  ...serve(roles, parts, { list, holders }),
];
