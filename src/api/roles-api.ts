import { z } from 'zod';
import { listRoleHolders, listRoleNames } from '../identity/user-roles.ts';
import { resource } from './contract.ts';
import { type Handle, serve } from './endpoint.ts';
import { id, time } from './fields.ts';
import { loadPage, pageOf, wholePage } from './paging.ts';
import { noParameters, page } from './query.ts';
import type { Route } from './route.ts';
import { roleOrigin, type UserRolesApiParts, userRoleRoutes } from './user-roles-api.ts';

export type RolesApiParts = UserRolesApiParts;

const path = '/api/admin/roles';
const READ = { method: 'GET', guard: 'admin', key: ['read', 'access'] } as const;

/** Roles of the database, which policies ask for (docs/authorization.md "What a policy knows"). */
export const roles = resource('Roles', 'Roles that are used, and who holds them.', {
  list: {
    ...READ,
    path,
    summary: 'List the roles that users have, and those that imports give',
    query: noParameters,
    replies: {
      200: pageOf(
        z.object({
          role: z.string(),
          holders: z.int().nonnegative().describe('How many users have it'),
          imported: z.boolean().describe('Whether imports of university data give it'),
        }),
      ),
    },
  },
  holders: {
    ...READ,
    key: ['people', 'access'],
    path: `${path}/:role/users`,
    summary: 'List the users who have a role',
    query: page,
    replies: {
      200: pageOf(
        z.object({ user: id, role: z.string(), origin: roleOrigin, granted_at: time, granted_by: z.string() }),
      ),
    },
  },
});

const list: Handle<typeof roles.list, RolesApiParts> = async ({ db }) => ({
  status: 200,
  json: wholePage(await listRoleNames(db)),
});

const holders: Handle<typeof roles.holders, RolesApiParts> = async ({ db }, { params, query }) => {
  const load = async (before: number, limit: number) =>
    (await listRoleHolders(db, params.role, before, limit)).map(r => ({ id: r.userId, ...r }));
  const json = await loadPage(query, load, r => ({
    user: r.userId,
    role: r.role,
    origin: r.origin,
    granted_at: r.grantedAt,
    granted_by: r.grantedBy,
  }));
  return { status: 200, json };
};

/** Roles of users, and who has which. */
export const roleRoutes = (parts: RolesApiParts): Route[] => [
  ...userRoleRoutes(parts),
  ...serve(roles, parts, { list, holders }),
];
