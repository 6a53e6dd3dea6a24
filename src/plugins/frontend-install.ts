import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import { type Actor, appendAudit } from '../audit/audit-log.ts';
import { ServiceError } from '../base/errors.ts';
import type { Database } from '../db/database.ts';
import { FrontendBundle } from '../frontends/frontend-bundle.ts';
import { type CheckRead, findInstalled } from './check-read.ts';
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
import { digestsOf } from './share-modules.ts';

export type FrontendInstallerParts = { db: Database; storage: ModuleStorage; registry: PluginRegistry };

/** Checks the whole ZIP of a received frontend. @throws ServiceError `frontend_refused` */
export async function checkFrontend(storage: ModuleStorage, received: ReceivedModule): Promise<FrontendInfo> {
  const bundle = await FrontendBundle.open(storage.frontendPath(received.key, null));
  try {
    const { bytes, files } = await bundle.check();
    return { sha256: received.sha256, packedBytes: received.size, files, bytes };
  } finally {
    bundle.close();
  }
}

/**
 * Receives and checks frontends of plugins, adds them to versions, and sets who may open them
 * (docs/plugins.md "Upload and installation", docs/identity.md "Sessions").
 */
export class FrontendInstaller {
  readonly #parts: FrontendInstallerParts;

  constructor(parts: FrontendInstallerParts) {
    this.#parts = parts;
  }

  /** Receives the ZIP of a frontend without checking it. */
  async receive(source: Readable, bytesMax: number): Promise<ReceivedModule> {
    const key = randomBytes(16).toString('hex');
    return { key, ...(await this.#parts.storage.receiveFrontend(key, source, bytesMax)) };
  }

  /**
   * Adds a frontend to a version, or replaces it. A version that was installed cannot be changed.
   *
   * @throws ServiceError `frontend_refused`, `conflict`; the ZIP is removed then
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
        // One whose secrets were lost is installed again before it runs, and is the same then.
        if (found.installedAt !== null || plugin?.installedVersionId === found.id)
          throw new ServiceError(
            'conflict',
            'this version was installed and cannot be changed; upload the module again together with the new frontend',
          );
        await setFrontend(client, found.id, info);
        await appendAudit(client, by, {
          action: 'plugin.frontend',
          objectType: 'plugin',
          objectId: pluginId,
          before: { wasm_key: wasmKey, frontend_sha256: found.frontend?.sha256 ?? null },
          after: { wasm_key: wasmKey, frontend_sha256: info.sha256 },
        });
        // Before the commit, so that a row never names a file that does not exist.
        await storage.moveFrontend(received.key, wasmKey, info.sha256);
        await storage.share(client, wasmKey, digestsOf({ ...found, frontend: info }));
        return [{ ...found, frontend: info }, found.frontend];
      });
      // After the commit, because until then the row names the old file.
      if (before !== null && before.sha256 !== info.sha256) await storage.removeFrontend(wasmKey, before.sha256);
      return version;
    } finally {
      await storage.remove(received.key);
    }
  }

  /** Sets who may open a plugin's frontend. @throws ServiceError `not_found` */
  async setAccess(pluginId: string, access: FrontendAccess, by: Actor, checkRead: CheckRead = () => {}): Promise<void> {
    const { db, registry } = this.#parts;
    await db.withTransaction(async client => {
      const plugin = await lockPlugin(client, pluginId);
      if (plugin === undefined) throw new ServiceError('not_found', `there is no plugin "${pluginId}"`);
      checkRead(plugin, await findInstalled(client, plugin));
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
   * Sets whether answers of a plugin's triggers that can run script are sent without the sandbox
   * (docs/SECURITY.md "Answers of triggers").
   *
   * @throws ServiceError `not_found`; `conflict` before the plugin is installed
   */
  async setHtmlTrust(pluginId: string, trusted: boolean, by: Actor, checkRead: CheckRead = () => {}): Promise<void> {
    const { db, registry } = this.#parts;
    await db.withTransaction(async client => {
      const plugin = await lockPlugin(client, pluginId);
      if (plugin === undefined) throw new ServiceError('not_found', `there is no plugin "${pluginId}"`);
      if (plugin.installedVersionId === null)
        throw new ServiceError(
          'conflict',
          `plugin "${pluginId}" is not installed; trust its pages after installing it`,
        );
      checkRead(plugin, await findInstalled(client, plugin));
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
