import type { Database, Queryable } from '../db/database.ts';
import type { ModuleContents } from './module-contents.ts';
import type { ModuleStorage, VersionDigests } from './module-storage.ts';
import type { VersionRow } from './plugin-store.ts';

/** Digests of the files of a version. */
export const digestsOf = (v: Pick<VersionRow, 'sha256' | 'runnable' | 'frontend'>): VersionDigests => ({
  uploaded: v.sha256,
  runnable: v.runnable.sha256,
  frontend: v.frontend?.sha256 ?? null,
});

const allOf = ({ frontend, runnable, uploaded }: VersionDigests): string[] => [
  uploaded,
  runnable,
  ...(frontend === null ? [] : [frontend]),
];

/** All versions, uninstalled ones included. */
async function listVersions(db: Queryable): Promise<Array<{ key: string; digests: VersionDigests }>> {
  const { rows } = await db.query<{ wasm_key: string; uploaded: string; runnable: string; frontend: string | null }>(
    `SELECT wasm_key, sha256 AS uploaded, runnable ->> 'sha256' AS runnable, frontend ->> 'sha256' AS frontend
     FROM plugin_versions
     UNION ALL
     SELECT wasm_key, sha256, runnable ->> 'sha256', frontend ->> 'sha256' FROM uninstalled_versions`,
  );
  return rows.map(({ wasm_key: key, ...digests }) => ({ key, digests }));
}

/**
 * Stores in the database what a release without that has left on this host's disk alone. What lies on another host's disk
 * is stored by that host.
 *
 * @returns how many versions lacked something that is stored now
 * @throws Error when nothing could be stored: the database failed, or files have changed since they were checked
 */
export async function shareModules(db: Database, contents: ModuleContents, storage: ModuleStorage): Promise<number> {
  const versions = await listVersions(db);
  const lacking = async (): Promise<typeof versions> => {
    const missing = await contents.missing(versions.flatMap(v => allOf(v.digests)));
    return versions.filter(v => allOf(v.digests).some(digest => missing.has(digest)));
  };
  const before = await lacking();
  if (before.length === 0) return 0;
  let problem: unknown = null;
  for (const { digests, key } of before)
    await db
      .withTransaction(client => storage.share(client, key, digests))
      .catch((error: unknown) => {
        problem ??= error;
      });
  const shared = before.length - (await lacking()).length;
  if (problem !== null && shared === 0) throw problem;
  return shared;
}
