import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import type { Database } from '../db/database.ts';
import { FrontendBundle } from '../frontends/frontend-bundle.ts';
import type { ModuleStorage, ReceivedModule } from './module-storage.ts';
import {
  type FrontendAccess,
  type FrontendInfo,
  findVersionByKey,
  lockPlugin,
  setFrontend,
  setFrontendAccess,
  setHtmlTrusted,
  type VersionRow,
} from './plugin-store.ts';
import type { PluginRegistry } from './registry.ts';

export type FrontendInstallerParts = { db: Database; storage: ModuleStorage; registry: PluginRegistry };

/** Looks a received frontend through, all of it. @throws ServiceError `frontend_refused` */
export async function checkFrontend(storage: ModuleStorage, received: ReceivedModule): Promise<FrontendInfo> {
  const bundle = await FrontendBundle.open(storage.frontendPath(received.key, null));
  try {
    const { bytes, files } = await bundle.check();
    return { sha256: received.sha256, packedBytes: received.size, files, bytes };
  } finally {
    bundle.close();
  }
}

/** Frontends delivered with plugins: received, checked, given to a version, opened to people (docs/plugins.md "Upload and installation", docs/identity.md "Sessions"). */
export class FrontendInstaller {
  readonly #parts: FrontendInstallerParts;

  constructor(parts: FrontendInstallerParts) {
    this.#parts = parts;
  }

  /** Takes the ZIP of a frontend in; nothing looks at it yet. */
  async receive(source: Readable, bytesMax: number): Promise<ReceivedModule> {
    const key = randomBytes(16).toString('hex');
    return { key, ...(await this.#parts.storage.receiveFrontend(key, source, bytesMax)) };
  }

  /**
   * Delivers a frontend with a version that was uploaded without one, or with another. What was installed once stays as it was.
   *
   * @throws ServiceError `frontend_refused`, `conflict`; nothing is kept then
   */
  async deliver(pluginId: string, wasmKey: string, received: ReceivedModule, by: Actor): Promise<VersionRow> {
    const { db, storage } = this.#parts;
    try {
      const info = await checkFrontend(storage, received);
      const [version, before] = await db.withTransaction(async (client): Promise<[VersionRow, FrontendInfo | null]> => {
        const plugin = await lockPlugin(client, pluginId);
        const found = plugin === undefined ? undefined : await findVersionByKey(client, pluginId, wasmKey);
        if (found === undefined)
          throw new ServiceError('not_found', `there is no version of "${pluginId}" with this wasm_key`);
        if (found.installedAt !== null)
          throw new ServiceError(
            'conflict',
            'this version was installed already and stays as it is; upload the module again together with the new frontend',
          );
        await setFrontend(client, found.id, info);
        await appendAudit(client, by, {
          action: 'plugin.frontend',
          objectType: 'plugin',
          objectId: pluginId,
          before: { wasm_key: wasmKey, frontend_sha256: found.frontend?.sha256 ?? null },
          after: { wasm_key: wasmKey, frontend_sha256: info.sha256 },
        });
        // Before the commit: a row never names a frontend that is not there.
        await storage.moveFrontend(received.key, wasmKey, info.sha256);
        return [{ ...found, frontend: info }, found.frontend];
      });
      // Behind the commit: until then the row names it.
      if (before !== null && before.sha256 !== info.sha256) await storage.removeFrontend(wasmKey, before.sha256);
      return version;
    } finally {
      await storage.remove(received.key);
    }
  }

  /** Says who may open a plugin's frontend. @throws ServiceError `not_found` */
  async setAccess(pluginId: string, access: FrontendAccess, by: Actor): Promise<void> {
    const { db, registry } = this.#parts;
    await db.withTransaction(async client => {
      const plugin = await lockPlugin(client, pluginId);
      if (plugin === undefined) throw new ServiceError('not_found', `there is no plugin "${pluginId}"`);
      await setFrontendAccess(client, pluginId, access);
      await appendAudit(client, by, {
        action: 'plugin.frontend_access',
        objectType: 'plugin',
        objectId: pluginId,
        before: { access: plugin.frontendAccess },
        after: { access },
      });
    });
    await registry.reload(pluginId);
  }

  /**
   * Says whether answers of a plugin's triggers that can run script go out without the sandbox (docs/SECURITY.md "Answers of triggers").
   *
   * @throws ServiceError `not_found`; `conflict` before the plugin is installed
   */
  async setHtmlTrust(pluginId: string, trusted: boolean, by: Actor): Promise<void> {
    const { db, registry } = this.#parts;
    await db.withTransaction(async client => {
      const plugin = await lockPlugin(client, pluginId);
      if (plugin === undefined) throw new ServiceError('not_found', `there is no plugin "${pluginId}"`);
      if (plugin.installedVersionId === null)
        throw new ServiceError(
          'conflict',
          `plugin "${pluginId}" is not installed; trust its pages after installing it`,
        );
      await setHtmlTrusted(client, pluginId, trusted);
      await appendAudit(client, by, {
        action: 'plugin.html_trust',
        objectType: 'plugin',
        objectId: pluginId,
        before: { trusted: plugin.htmlTrusted },
        after: { trusted },
      });
    });
    await registry.reload(pluginId);
  }
}
