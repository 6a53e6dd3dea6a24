/**
 * What administrators and administration keys may do (docs/administrators.md "Roles and scopes"). A key has scopes; an
 * administrator has roles, and each role is a set of the same scopes.
 */

/** Scopes. `plugins:deploy` may be limited to one plugin: `plugins:deploy:<plugin id>`. `admin` includes the others. */
export const ADMIN_SCOPES = [
  'read',
  'people',
  'plugins:deploy',
  'plugins:accept',
  'access',
  'university',
  'operate',
  'admin',
] as const;
export type AdminScope = (typeof ADMIN_SCOPES)[number];

export const ADMIN_ROLES = ['auditor', 'operator', 'plugin_manager', 'access_manager', 'owner'] as const;
export type AdminRole = (typeof ADMIN_ROLES)[number];

/** An owner may also do what no key may: make keys and administrators, and trust the pages of a plugin. */
export const ROLE_SCOPES: Readonly<Record<AdminRole, readonly AdminScope[]>> = {
  auditor: ['read', 'people'],
  operator: ['read', 'operate'],
  plugin_manager: ['read', 'plugins:deploy', 'plugins:accept'],
  access_manager: ['read', 'people', 'access', 'university'],
  owner: ['admin'],
};

/** The roles of an administrator. `plugins` are those a plugin manager manages; null for all. */
export type AdminRoles = { readonly roles: readonly AdminRole[]; readonly plugins: readonly string[] | null };

export const OWNER: AdminRoles = { roles: ['owner'], plugins: null };

const DEPLOY_ONE = 'plugins:deploy:';

/** Whether a text is a scope, including `plugins:deploy` for a single plugin. */
export function isScope(text: string): boolean {
  return ADMIN_SCOPES.some(s => s === text) || /^plugins:deploy:[a-z0-9][a-z0-9_-]{0,63}$/.test(text);
}

/** The plugins named in scopes `plugins:deploy:<plugin id>`. */
export function deployedPlugins(scopes: readonly string[]): string[] {
  return scopes.filter(s => s.startsWith(DEPLOY_ONE)).map(s => s.slice(DEPLOY_ONE.length));
}

/**
 * Whether scopes include a scope.
 *
 * @param pluginId the plugin concerned, for scopes that name one
 */
export function hasScope(scopes: readonly string[], scope: AdminScope, pluginId?: string): boolean {
  if (scopes.includes('admin') || scopes.includes(scope)) return true;
  return scope === 'plugins:deploy' && pluginId !== undefined && scopes.includes(`${DEPLOY_ONE}${pluginId}`);
}

/** The scopes of an administrator's roles, in the order of `ADMIN_SCOPES`; a limited manager has one for each plugin. */
export function scopesOf({ plugins, roles }: AdminRoles): string[] {
  const held = new Set(roles.flatMap(role => ROLE_SCOPES[role]));
  return ADMIN_SCOPES.filter(s => held.has(s)).flatMap(s =>
    s === 'plugins:deploy' && plugins !== null ? plugins.map(id => `${DEPLOY_ONE}${id}`) : [s],
  );
}

/** The first of the wanted scopes that goes beyond the held ones; undefined if none does. */
export function scopeBeyond(held: readonly string[], wanted: readonly string[]): string | undefined {
  return wanted.find(
    scope =>
      !held.includes('admin') &&
      !held.includes(scope) &&
      !(scope.startsWith(DEPLOY_ONE) && held.includes('plugins:deploy')),
  );
}

/** The roles that include a scope; for `never`, what only an owner may do. */
export function rolesWith(scope: AdminScope | 'never'): AdminRole[] {
  return ADMIN_ROLES.filter(role => role === 'owner' || (scope !== 'never' && ROLE_SCOPES[role].includes(scope)));
}
