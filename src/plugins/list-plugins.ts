import type { Queryable } from '../db/database.ts';
import { findRows } from '../db/rows.ts';
import type { PluginRow } from './plugin-store.ts';

/**
 * @param after id of the last one before this page; empty for the first page
 * @param search part of the id, or of the name that the installed version has; empty for all
 */
export async function listPlugins(
  db: Queryable,
  { after, limit, search }: { after: string; limit: number; search: string },
): Promise<PluginRow[]> {
  return await findRows<PluginRow>(
    db,
    `SELECT * FROM plugins p WHERE id > $1 AND ($3 = '' OR strpos(lower(id), lower($3)) > 0 OR EXISTS (
       SELECT FROM plugin_versions v
       WHERE v.id = p.installed_version_id AND strpos(lower(v.manifest->>'name'), lower($3)) > 0))
     ORDER BY id LIMIT $2`,
    [after, limit, search],
  );
}
