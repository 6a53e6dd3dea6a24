/** Ids that SpiceDB accepts. */
const PLAIN = /^[a-zA-Z0-9/_|\-=+]+$/;
const SPELLED = /^=[A-Za-z0-9_-]+$/;

/**
 * Encodes an id for the graph store: an id it would refuse, or one that begins with `=`, becomes `=` and the base64url
 * of its UTF-8 bytes (docs/authorization.md "Ids").
 *
 * @param id any text of 1 to `LIMITS.graphIdCharsMax` characters
 */
export function toGraphId(id: string): string {
  return PLAIN.test(id) && !id.startsWith('=') ? id : `=${Buffer.from(id, 'utf8').toString('base64url')}`;
}

/** Decodes an id of the graph store; the inverse of `toGraphId`. */
export function fromGraphId(spelled: string): string {
  return SPELLED.test(spelled) ? Buffer.from(spelled.slice(1), 'base64url').toString('utf8') : spelled;
}

/** Object id of a role of a plugin (docs/authorization.md "Ids"). */
export const pluginRoleId = (pluginId: string, role: string): string => `${pluginId}/${role}`;
