import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import { type Actor, type AuditState, appendAudit } from '../audit/audit-log.ts';
import { type FieldError, ServiceError } from '../base/errors.ts';
import type { TrustedKey } from '../config/trusted-key.ts';
import type { Database, Queryable } from '../db/database.ts';
import { unknownPlugin } from '../db/held-rows.ts';
import type { SecretBox } from '../secrets/secret-box.ts';
import { type CheckRead, findInstalled } from './check-read.ts';
import { type Finding, unknownMemberFindings } from './finding.ts';
import { checkFrontend } from './frontend-install.ts';
import {
  type AccessPlan,
  type AccessRequest,
  DEFAULT_ACCESS,
  planAccess,
  saveAccess,
  type TriggerChanges,
  type TriggerPolicies,
} from './install-access.ts';
import { databasesOf, type Manifest, parseManifest, permissionsOf } from './manifest.ts';
import { checkSignature, type ModuleSignature, type SignatureState } from './module-signature.ts';
import type { ModuleStorage, ReceivedModule } from './module-storage.ts';
import { NO_RULES } from './network-rules.ts';
import { checkConfig } from './plugin-config.ts';
import {
  addVersion,
  findPlugin,
  findVersion,
  findVersionByKey,
  listModuleKeys,
  lockPlugin,
  type PluginRow,
  type Runnable,
  removePlugin,
  setEnabled,
  setInstalled,
  type VersionRow,
  wasEverKnown,
} from './plugin-store.ts';
import { ModuleRefused, type PrepareParts, prepareRunnable } from './prepare-runnable.ts';
import type { TriggerAccess } from './public-access.ts';
import { NO_SECRETS, openSecrets, type PluginRegistry, secretsOwner } from './registry.ts';
import { requireTrusted } from './require-trusted.ts';
import { digestsOf } from './share-modules.ts';
import { keepVersions } from './uninstalled.ts';
import { upgradeModules } from './upgrade-modules.ts';
import { type GuardedCommand, type Installable, requireAccepted, type Widening, wideningOf } from './widening.ts';

/** Shown in every review of a version with a frontend (docs/SECURITY.md "The browser origin"). */
const FRONTEND_NOTE: Finding = {
  level: 'note',
  rule: 'frontend',
  message:
    'it comes with a frontend: without plugins.origin its scripts run on the origin of this service and act for the users who open it; they cannot use the administration, but can imitate its pages',
};

const WRONG_SIGNATURE: Finding = {
  level: 'refusal',
  rule: 'signature',
  message:
    'the signature is of a key that is trusted, but not over these bytes: the module was changed after it was signed',
};

const ORPHAN_MS_MIN = 3_600_000;

/** `describe` runs `plugin_describe` of a module without any permission. */
export type InstallerParts = {
  db: Database;
  storage: ModuleStorage;
  registry: PluginRegistry;
  secrets: SecretBox;
  trialCompile: PrepareParts['trialCompile'];
  trialStart: PrepareParts['trialStart'];
  remembersStarts?: PrepareParts['remembersStarts'];
  describe(key: string, runnable: Runnable): Promise<string>;
  /** Removes data of a plugin in other features, at the end of the transaction that uninstalls it. */
  onUninstall(client: Queryable, pluginId: string): Promise<void>;
  /** Called when another version of a plugin runs than before. */
  onVersionChanged(pluginId: string, versionId: number, by: Actor): Promise<void>;
  policies: TriggerPolicies;
  /** What protects the commands of a plugin, by name; part of the feature that decides who may run them. */
  commandGuards(db: Queryable, pluginId: string): Promise<ReadonlyMap<string, Omit<GuardedCommand, 'name'>>>;
  /** Keys of authors that are trusted, and whether others may not be installed. */
  trustedKeys: readonly TrustedKey[];
  requiresSignature: boolean;
  /** Whether script of plugins runs on the origin of the service. */
  sharesOrigin: boolean;
};

/** Called with all that an installation widens; throws if the caller may not. */
export type CheckWidening = (found: readonly Widening[]) => void;

export type InstallRequest = {
  wasmKey: string;
  config: unknown;
  acceptPermissions: true | readonly string[];
  access: AccessRequest;
  checkRead?: CheckRead;
  /** The service's own sample needs no signature. */
  isOwn?: boolean;
};

/**
 * Upload, install, roll back, enable, uninstall (docs/plugins.md "Upload and installation",
 * docs/plugins.md "Executions").
 */
export class PluginInstaller {
  readonly #parts: InstallerParts;

  constructor(parts: InstallerParts) {
    this.#parts = parts;
  }

  /** Whether a plugin with this id was ever uploaded, even if it was uninstalled since. */
  async wasEverKnown(id: string): Promise<boolean> {
    return await wasEverKnown(this.#parts.db, id);
  }

  /** Receives the bytes of a module without checking them. */
  async receive(source: Readable, bytesMax: number): Promise<ReceivedModule> {
    const key = randomBytes(16).toString('hex');
    return { key, ...(await this.#parts.storage.receive(key, source, bytesMax)) };
  }

  /** Removes received bytes. */
  async discard(received: ReceivedModule): Promise<void> {
    await this.#parts.storage.remove(received.key);
  }

  /** The bytes of a version as they were uploaded. @throws Error when they are damaged, on disk and in the database */
  async readUploaded({ sha256, wasmKey }: VersionRow): Promise<Uint8Array> {
    return await this.#parts.storage.readUploaded(wasmKey, sha256);
  }

  /**
   * Runs the gate on received bytes, reads the manifest, runs the start once, and compiles the module on trial.
   *
   * @param by who uploaded the module
   * @param frontend received with them, or null
   * @param allow throws if the caller may not upload the plugin that the manifest names
   * @returns the new version, which is not installed yet
   * @throws ServiceError `module_refused` with all findings; the bytes are removed then
   */
  async admit(
    received: ReceivedModule,
    by: Actor,
    frontend: ReceivedModule | null = null,
    allow: (pluginId: string) => void = () => {},
  ): Promise<VersionRow> {
    const { db, storage } = this.#parts;
    const { key } = received;
    try {
      const info = frontend === null ? null : await checkFrontend(storage, frontend);
      const { findings, manifest, runnable, signature } = await this.#prepare(received);
      allow(manifest.id);
      if (checkSignature(signature, this.#parts.trustedKeys).state === 'wrong')
        throw new ModuleRefused([WRONG_SIGNATURE]);
      if (frontend !== null) await storage.moveFrontend(frontend.key, key, frontend.sha256);
      const digests = digestsOf({ sha256: received.sha256, runnable, frontend: info });
      await db.withTransaction(client => storage.share(client, key, digests));
      return await addVersion(db, by, {
        pluginId: manifest.id,
        version: manifest.version,
        wasmKey: key,
        sha256: received.sha256,
        size: received.size,
        manifest,
        findings: info === null ? findings : [...findings, FRONTEND_NOTE],
        permissions: permissionsOf(manifest),
        runnable,
        frontend: info,
        signature,
      });
    } catch (error) {
      await storage.remove(key);
      throw error;
    } finally {
      if (frontend !== null) await storage.remove(frontend.key);
    }
  }

  /**
   * Runs the present gate on stored modules that an older gate accepted. Call it before the service serves.
   *
   * @param report called with each version: done, or why it was refused
   */
  upgrade(report: (version: VersionRow, problem: string | null) => void): Promise<void> {
    return upgradeModules(this.#parts, report);
  }

  /** Removes files that belong to no version, which a crash during an upload leaves behind. Returns how many. */
  async removeOrphans(): Promise<number> {
    return await this.#parts.storage.removeOrphans(await listModuleKeys(this.#parts.db), ORPHAN_MS_MIN);
  }

  /** Runs the gate, and asks the module for its manifest if it has no section with it. */
  async #prepare({ key, sha256 }: ReceivedModule): Promise<{
    findings: Finding[];
    manifest: Manifest;
    runnable: Runnable;
    signature: ModuleSignature | null;
  }> {
    const { inspection, runnable } = await prepareRunnable(this.#parts, { key, sha256, manifest: null });
    const { findings, signature } = inspection;
    if (inspection.manifest !== null) return { findings, manifest: inspection.manifest, runnable, signature };
    const { manifest, unknown } = await this.#describe(key, findings, runnable);
    const described = await prepareRunnable(this.#parts, { key, sha256, manifest });
    const note: Finding = {
      level: 'note',
      rule: 'described',
      message: 'the manifest comes from plugin_describe, not from a plugin.manifest section',
    };
    const all = [...findings, note, ...unknownMemberFindings(unknown), ...described.inspection.findings];
    return { findings: all, manifest, runnable: described.runnable, signature };
  }

  async #describe(
    key: string,
    found: Finding[],
    runnable: Runnable,
  ): Promise<{ manifest: Manifest; unknown: FieldError[] }> {
    const parsed = parseManifest(await this.#parts.describe(key, runnable));
    if (parsed.ok) return parsed;
    const findings = parsed.errors.map(
      (e): Finding => ({
        level: 'refusal',
        rule: 'manifest',
        message: e.message,
        where: `manifest ${e.pointer || '/'}`,
      }),
    );
    throw new ModuleRefused([...found, ...findings]);
  }

  /**
   * Installs an uploaded version. Executions of the version before finish on that version.
   *
   * @returns how its triggers differ from those of the version before
   * @throws ServiceError `validation_failed` naming each config field, `permissions_not_accepted` naming the new ones,
   *   `confirmation_required` naming the URLs that would become public and what else would be wider
   */
  async install(
    pluginId: string,
    request: InstallRequest,
    by: Actor,
    check: CheckWidening = () => {},
  ): Promise<TriggerChanges> {
    const { db, policies, secrets } = this.#parts;
    let changedTo: number | null = null;
    const changes = await db.withTransaction(async client => {
      const plugin = await lockPlugin(client, pluginId);
      if (plugin === undefined) throw unknownPlugin(pluginId);
      const version = await findVersionByKey(client, pluginId, request.wasmKey);
      if (version === undefined)
        throw unknownVersion(
          `there is no uploaded version of "${pluginId}" with this wasm_key`,
          'must be the wasm_key from the answer to an upload of this plugin',
        );
      requireRunnable(version);
      changedTo = version.id === plugin.installedVersionId ? null : version.id;
      if (request.isOwn !== true) this.#requireSigned(version, plugin);
      const before =
        plugin.installedVersionId === null ? undefined : await findVersion(client, plugin.installedVersionId);
      request.checkRead?.(plugin, before);
      const kept = before === undefined ? NO_SECRETS : openSecrets(secrets, before);
      const values = checkConfig(version.manifest, request.config, {
        config: before?.config ?? {},
        network: before?.network ?? NO_RULES,
        secrets: kept,
      });
      const manifests = { before: before?.manifest, after: version.manifest };
      const plan = await planAccess(client, pluginId, manifests, request.access, policies);
      const given = { ...version, ...values, databases: values.secrets.databases };
      const found = await this.#widening(client, plugin, before, given, plan, request.access);
      check(found);
      requireAccepted(found, plan.public, before !== undefined, {
        permissions: request.acceptPermissions,
        public: request.access.acceptPublic,
        widening: request.access.acceptWidening,
      });
      const triggers = await saveAccess(client, pluginId, manifests, plan, request.access, policies, by);
      await setInstalled(client, pluginId, version.id, {
        config: values.config,
        network: values.network,
        // Sealed again they would look changed, although they are not.
        secrets:
          before?.secrets != null && isDeepStrictEqual(values.secrets, kept)
            ? before.secrets
            : secrets.seal(JSON.stringify(values.secrets), secretsOwner(pluginId)),
      });
      await appendAudit(client, by, {
        action: 'plugin.install',
        objectType: 'plugin',
        objectId: pluginId,
        ...(before === undefined ? {} : { before: { ...installedState(before), ...triggers.before } }),
        after: { ...installedState({ ...version, ...values }), ...triggers.after },
      });
      return triggers;
    });
    await this.#runVersion(pluginId, changedTo, by);
    return changes;
  }

  /** Runs what is installed now, on this host. @param changedTo its number, unless it ran before */
  async #runVersion(pluginId: string, changedTo: number | null, by: Actor): Promise<void> {
    const { onVersionChanged, registry } = this.#parts;
    await registry.reload(pluginId);
    if (changedTo !== null) await onVersionChanged(pluginId, changedTo, by);
    await registry.compileAhead(pluginId);
  }

  /** @throws ServiceError `validation_failed` where signatures are required and this version has none that counts */
  #requireSigned(version: VersionRow, plugin: PluginRow): void {
    const { requiresSignature, trustedKeys } = this.#parts;
    // The version that runs already may be configured again.
    if (!requiresSignature || version.id === plugin.installedVersionId) return;
    requireTrusted(this.signer(version), version.frontend, trustedKeys);
  }

  /** Who signed a version, as the configuration tells now. */
  signer(version: VersionRow): SignatureState {
    return checkSignature(version.signature, this.#parts.trustedKeys);
  }

  /** Names of the sensitive fields of an installed version that have a value; none where the key that opens them is lost. */
  secretNames(version: VersionRow): ReadonlySet<string> {
    try {
      return new Set(Object.keys(openSecrets(this.#parts.secrets, version).fields));
    } catch {
      return new Set();
    }
  }

  /** What an installation of a version widens if its request says nothing but which version. */
  async previewWidening(version: VersionRow): Promise<Widening[]> {
    const { db, policies, secrets } = this.#parts;
    const plugin = await findPlugin(db, version.pluginId);
    if (plugin === undefined) throw unknownPlugin(version.pluginId);
    const before = await findInstalled(db, plugin);
    const manifests = { before: before?.manifest, after: version.manifest };
    const plan = await planAccess(db, plugin.id, manifests, DEFAULT_ACCESS, policies);
    const kept = before === undefined ? {} : openSecrets(secrets, before).databases;
    const databases = Object.fromEntries(databasesOf(version.manifest).map(name => [name, kept[name] ?? '']));
    const network = (version.permissions.includes('network') ? before?.network : undefined) ?? NO_RULES;
    return await this.#widening(db, plugin, before, { ...version, network, databases }, plan, DEFAULT_ACCESS);
  }

  async #widening(
    db: Queryable,
    plugin: PluginRow,
    before: VersionRow | undefined,
    after: Pick<VersionRow, 'frontend' | 'manifest' | 'network' | 'permissions'> & Pick<Installable, 'databases'>,
    plan: AccessPlan,
    access: AccessRequest,
  ): Promise<Widening[]> {
    const guards = await this.#parts.commandGuards(db, plugin.id);
    const sideOf = (v: typeof after, triggers: TriggerAccess): Installable => ({
      ...v,
      hasFrontend: v.frontend !== null,
      triggers,
      commands: v.manifest.triggers
        .filter(t => t.type === 'messenger')
        .map(({ name }) => ({ name, isEnabled: true, guard: '', ...guards.get(name) })),
    });
    const databases = before === undefined ? {} : openSecrets(this.#parts.secrets, before).databases;
    return wideningOf({
      pluginId: plugin.id,
      before: before === undefined ? undefined : sideOf({ ...before, databases }, plan.before),
      after: sideOf(after, plan.after),
      public: plan.public,
      sharesOrigin: this.#parts.sharesOrigin,
      htmlTrusted: plugin.htmlTrusted,
      said: new Set(access.triggers.keys()),
    });
  }

  /** Installs a version again that was installed before, with the configuration it had. */
  async rollback(
    pluginId: string,
    { access, checkRead, wasmKey }: Pick<InstallRequest, 'access' | 'checkRead' | 'wasmKey'>,
    by: Actor,
    check: CheckWidening = () => {},
  ): Promise<TriggerChanges> {
    const { db, policies, secrets } = this.#parts;
    let changedTo: number | null = null;
    const changes = await db.withTransaction(async client => {
      const plugin = await lockPlugin(client, pluginId);
      if (plugin === undefined) throw unknownPlugin(pluginId);
      const version = await findVersionByKey(client, pluginId, wasmKey);
      if (version === undefined)
        throw unknownVersion(
          `there is no version of "${pluginId}" with this wasm_key`,
          `must be the wasm_key of a version in GET /api/admin/plugins/${pluginId}/versions`,
        );
      if (version.installedAt === null)
        throw new ServiceError(
          'conflict',
          'this version was never installed, so it has no configuration to restore; install it instead',
        );
      if (plugin.installedVersionId === version.id)
        throw new ServiceError('conflict', 'this version is the installed one already');
      changedTo = version.id;
      requireRunnable(version);
      this.#requireSigned(version, plugin);
      const before =
        plugin.installedVersionId === null ? undefined : await findVersion(client, plugin.installedVersionId);
      checkRead?.(plugin, before);
      const manifests = { before: before?.manifest, after: version.manifest };
      const plan = await planAccess(client, pluginId, manifests, access, policies);
      const back = { ...version, databases: openSecrets(secrets, version).databases };
      const found = await this.#widening(client, plugin, before, back, plan, access);
      check(found);
      // Its requirements were accepted when it was installed; who may call it may have changed since.
      const { acceptPublic, acceptWidening: given } = access;
      const widening = given === true ? given : [...given, 'frontend', 'html'];
      const accepted = { permissions: true as const, public: acceptPublic, widening };
      requireAccepted(found, plan.public, before !== undefined, accepted);
      const triggers = await saveAccess(client, pluginId, manifests, plan, access, policies, by);
      await setInstalled(client, pluginId, version.id, null);
      await appendAudit(client, by, {
        action: 'plugin.rollback',
        objectType: 'plugin',
        objectId: pluginId,
        ...(before === undefined ? {} : { before: installedState(before) }),
        after: { ...installedState(version), ...triggers.after },
      });
      return triggers;
    });
    await this.#runVersion(pluginId, changedTo, by);
    return changes;
  }

  async setEnabled(pluginId: string, enabled: boolean, by: Actor, checkRead: CheckRead = () => {}): Promise<void> {
    const { db, registry } = this.#parts;
    await db.withTransaction(async client => {
      const plugin = await lockPlugin(client, pluginId);
      if (plugin === undefined) throw unknownPlugin(pluginId);
      checkRead(plugin, await findInstalled(client, plugin));
      await setEnabled(client, pluginId, enabled);
      await appendAudit(client, by, {
        action: enabled ? 'plugin.enable' : 'plugin.disable',
        objectType: 'plugin',
        objectId: pluginId,
        before: { enabled: plugin.enabled },
        after: { enabled },
      });
    });
    await registry.reload(pluginId);
  }

  /**
   * Removes a plugin with its versions, settings, and key-value data. Keeps its execution records for their retention
   * time, and its modules and frontends for `plugins.keep_uninstalled`.
   */
  async uninstall(pluginId: string, by: Actor, checkRead: CheckRead = () => {}): Promise<void> {
    const { db, onUninstall, registry } = this.#parts;
    await db.withTransaction(async client => {
      const plugin = await lockPlugin(client, pluginId);
      if (plugin === undefined) throw unknownPlugin(pluginId);
      const version =
        plugin.installedVersionId === null ? undefined : await findVersion(client, plugin.installedVersionId);
      checkRead(plugin, version);
      await appendAudit(client, by, {
        action: 'plugin.uninstall',
        objectType: 'plugin',
        objectId: pluginId,
        ...(version === undefined ? {} : { before: installedState(version) }),
      });
      await keepVersions(client, pluginId);
      await removePlugin(client, pluginId);
      await onUninstall(client, pluginId);
    });
    await registry.reload(pluginId);
  }
}

/**
 * The state of an installation for the audit log; `config` has no values of sensitive fields and no connection strings.
 */
function installedState(v: Pick<VersionRow, 'version' | 'wasmKey' | 'permissions' | 'config' | 'network'>): AuditState {
  const { config, network, permissions, version, wasmKey } = v;
  return { version, wasm_key: wasmKey, permissions, config, network };
}

const unknownVersion = (text: string, message: string): ServiceError =>
  new ServiceError('validation_failed', text, { errors: [{ pointer: '/wasm_key', message, code: 'not_found' }] });

/** Refuses to install a version that a newer gate refuses; if it is installed already, it stays installed. */
function requireRunnable(version: VersionRow): void {
  if (version.runnable.refused === undefined) return;
  throw new ServiceError('module_refused', version.runnable.refused, { extra: { findings: version.findings } });
}
