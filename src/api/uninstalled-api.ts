import type { Database } from '../db/database.ts';
import { jsonReply } from '../http/message.ts';
import { listUninstalled, restoreUninstalled } from '../plugins/uninstalled.ts';
import { actorOf, type Route } from './route.ts';

/** Versions of uninstalled plugins: what is kept, until when, and bringing one back. */
export function uninstalledRoutes({ db, keepMs }: { db: Database; keepMs: number }): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/admin/uninstalled',
      guard: 'admin',
      key: ['read'],
      async handle() {
        const items = (await listUninstalled(db)).map(v => ({
          id: v.pluginId,
          version: v.version,
          wasm_key: v.wasmKey,
          sha256: v.sha256,
          size: v.size,
          uploaded_at: v.uploadedAt,
          uninstalled_at: v.uninstalledAt,
          kept_until: new Date(v.uninstalledAt.getTime() + keepMs),
        }));
        return jsonReply(200, { items, next_cursor: null });
      },
    },
    {
      method: 'POST',
      path: '/api/admin/uninstalled/:key/restore',
      guard: 'admin',
      // The row names no plugin: a key for named plugins does not open it.
      key: ['plugins:deploy'],
      async handle({ caller, request }) {
        const v = await restoreUninstalled(db, request.params.key ?? '', actorOf(caller, request));
        return jsonReply(200, { id: v.pluginId, version: v.version, wasm_key: v.wasmKey, permissions: v.permissions });
      },
    },
  ];
}
