import { isDeepStrictEqual } from 'node:util';
import type { LoadedModule } from '../abi/lane-messages.ts';
import type { Database } from '../db/database.ts';
import type { SecretBox } from '../secrets/secret-box.ts';
import { RUNNABLE_FORMAT } from './gate/rewrite.ts';
import { callPermission, databasesOf, type HttpTrigger, type Manifest } from './manifest.ts';
import { type CompiledModule, ModuleCache } from './module-cache.ts';
import type { ModuleStorage } from './module-storage.ts';
import type { NetworkRules } from './network-rules.ts';
import {
  type FrontendAccess,
  type FrontendInfo,
  loadInstalled,
  type PluginRow,
  type Runnable,
  type VersionRow,
} from './plugin-store.ts';
import { TriggerRoutes } from './trigger-routes.ts';
import { DEFAULT_SETTINGS, type TriggerSettings } from './trigger-settings.ts';

/** An HTTP trigger of an installed plugin, prepared for requests. */
export type InstalledTrigger = {
  plugin: InstalledPlugin;
  trigger: HttpTrigger;
  settings: TriggerSettings;
  /** The trigger's own frontend origins, or those of the plugin. */
  origins: ReadonlySet<string>;
};

export type InstalledPlugin = {
  id: string;
  /** Id of the installed version, the same on every host. */
  versionId: number;
  /** Id of the module with its configuration on this host; changes with every installation. */
  moduleId: number;
  version: string;
  /** SHA-256 of the module as it was uploaded. */
  sha256: string;
  manifest: Manifest;
  permissions: ReadonlySet<string>;
  config: Readonly<Record<string, string>>;
  /** Connection strings by logical name. */
  databases: Readonly<Record<string, string>>;
  /** Rules for its outgoing requests. */
  network: NetworkRules;
  enabled: boolean;
  /** Frontend origins of the plugin. */
  origins: ReadonlySet<string>;
  /** Those of the plugin and of its triggers: pages that may call one of them may hand it files. */
  allOrigins: ReadonlySet<string>;
  /** The frontend of the version, and the key it is stored under. */
  frontend: (FrontendInfo & { wasmKey: string }) | null;
  frontendAccess: FrontendAccess;
  /** Whether answers of its triggers that can run script are sent without the sandbox. */
  htmlTrusted: boolean;
  routes: TriggerRoutes<InstalledTrigger>;
  triggers: ReadonlyMap<string, InstalledTrigger>;
};

/** Secrets of an installation, before they are encrypted. */
export type InstalledSecrets = { fields: Record<string, string>; databases: Record<string, string> };

export const NO_SECRETS: InstalledSecrets = { fields: {}, databases: {} };

export const secretsOwner = (pluginId: string): string => `plugin:${pluginId}`;

export function openSecrets(box: SecretBox, version: VersionRow): InstalledSecrets {
  if (version.secrets === null) return NO_SECRETS;
  return JSON.parse(box.open(version.secrets, secretsOwner(version.pluginId))) as InstalledSecrets;
}

export type RegistryParts = {
  db: Database;
  box: SecretBox;
  storage: ModuleStorage;
  /** The separate origin of a plugin's pages, or null if they share the origin of the service. */
  ownOrigin: (pluginId: string) => string | null;
  /** Bytes that compiled modules may take together. */
  compiledBytesMax: number;
};

type ModuleSource = {
  versionId: number;
  pluginId: string;
  wasmKey: string;
  runnable: Runnable;
  config: Readonly<Record<string, string>>;
};

function assemble(
  moduleId: number,
  plugin: PluginRow,
  version: VersionRow,
  secrets: InstalledSecrets,
  settings: ReadonlyMap<string, TriggerSettings>,
  ownOrigin: string | null,
): InstalledPlugin {
  const own = ownOrigin === null ? [] : [ownOrigin];
  const triggers = new Map<string, InstalledTrigger>();
  const wanted = new Set(databasesOf(version.manifest));
  const installed: InstalledPlugin = {
    id: plugin.id,
    versionId: version.id,
    moduleId,
    version: version.version,
    sha256: version.sha256,
    manifest: version.manifest,
    permissions: new Set(version.permissions),
    config: { ...version.config, ...secrets.fields },
    databases: Object.fromEntries(Object.entries(secrets.databases).filter(([name]) => wanted.has(name))),
    network: version.network,
    enabled: plugin.enabled,
    origins: new Set([...plugin.frontendOrigins, ...own]),
    allOrigins: new Set(),
    frontend: version.frontend === null ? null : { ...version.frontend, wasmKey: version.wasmKey },
    frontendAccess: plugin.frontendAccess,
    htmlTrusted: plugin.htmlTrusted,
    routes: new TriggerRoutes<InstalledTrigger>([]),
    triggers,
  };
  for (const trigger of version.manifest.triggers) {
    if (trigger.type !== 'http') continue;
    const access = settings.get(trigger.name) ?? DEFAULT_SETTINGS;
    triggers.set(trigger.name, {
      plugin: installed,
      trigger,
      settings: access,
      origins: new Set([...(access.frontendOrigins ?? plugin.frontendOrigins), ...own]),
    });
  }
  installed.allOrigins = new Set([
    ...installed.origins,
    ...[...triggers.values()].filter(t => t.settings.enabled).flatMap(t => [...t.origins]),
  ]);
  installed.routes = new TriggerRoutes([...triggers.values()].map(t => ({ trigger: t.trigger, target: t })));
  return installed;
}

/**
 * The installed plugins, in memory. After a change this host reads the plugin again at once, other hosts when they are
 * notified. Executions already admitted continue with the version they were admitted for.
 */
export class PluginRegistry {
  readonly #db: Database;
  readonly #box: SecretBox;
  readonly #storage: ModuleStorage;
  readonly #ownOrigin: (pluginId: string) => string | null;
  readonly #plugins = new Map<string, InstalledPlugin>();
  readonly #sources = new Map<number, ModuleSource>();
  readonly #modules: ModuleCache;
  readonly #reloads = new Map<string, Promise<void>>();
  /** For each running read of all plugins, the plugins that were reloaded since it began. */
  readonly #loads = new Set<{ reloaded: Set<string>; failed: Set<string> }>();
  #nextModuleId = 1;

  constructor({ box, compiledBytesMax, db, ownOrigin, storage }: RegistryParts) {
    this.#db = db;
    this.#box = box;
    this.#storage = storage;
    this.#ownOrigin = ownOrigin;
    this.#modules = new ModuleCache(
      id => this.#compile(id),
      compiledBytesMax,
      () => this.onModulesRemoved(),
    );
  }

  /** Called when compiled modules were removed for lack of room: others may hold them still. */
  onModulesRemoved: () => void = () => {};

  find(id: string): InstalledPlugin | undefined {
    return this.#plugins.get(id);
  }

  ids(): Iterable<string> {
    return this.#plugins.keys();
  }

  /** All installed plugins, including disabled ones. */
  installed(): Iterable<InstalledPlugin> {
    return this.#plugins.values();
  }

  /** Ids of the plugins that may call a plugin, in order. */
  callersOf(id: string): string[] {
    const asked = callPermission(id);
    return [...this.#plugins.values()]
      .filter(p => p.permissions.has(asked))
      .map(p => p.id)
      .sort();
  }

  /** Whether a plugin may call others, or others may call it. */
  takesPartInCalls(id: string): boolean {
    for (const { permissions } of this.#plugins.values()) if (permissions.has(callPermission(id))) return true;
    const own = this.#plugins.get(id)?.permissions ?? [];
    return [...own].some(permission => permission.startsWith(callPermission('')));
  }

  /** Whether any plugin lists this origin, for itself or for one of its triggers. */
  hasOrigin(origin: string): boolean {
    for (const plugin of this.#plugins.values()) if (plugin.enabled && plugin.allOrigins.has(origin)) return true;
    return false;
  }

  get size(): number {
    return this.#plugins.size;
  }

  /**
   * Reads all installed plugins.
   *
   * @param cannotRead called for a plugin that cannot be read; it does not run on this host, the others do
   */
  async loadAll(cannotRead: (pluginId: string, error: unknown) => void): Promise<void> {
    const seen = new Set<string>();
    // A plugin that was reloaded meanwhile is newer than this answer; an answer asked for before may be older.
    const reloaded = new Set<string>();
    const again = new Set(this.#reloads.keys());
    const load = { reloaded, failed: again };
    this.#loads.add(load);
    try {
      for (const { plugin, settings, version } of await loadInstalled(this.#db, null)) {
        seen.add(plugin.id);
        if (reloaded.has(plugin.id)) continue;
        try {
          this.#put(plugin, version, settings);
        } catch (error) {
          // Continuing with the version before could use rights that were revoked.
          this.drop(plugin.id);
          cannotRead(plugin.id, error);
        }
      }
    } finally {
      this.#loads.delete(load);
    }
    for (const id of this.#plugins.keys()) if (!seen.has(id) && !reloaded.has(id)) this.drop(id);
    for (const id of reloaded) if (this.#reloads.has(id)) again.add(id);
    await Promise.all([...again].map(id => this.reload(id)));
  }

  /**
   * Reads one plugin again. Reloads of a plugin run one after another, so that an older answer never overwrites a newer
   * one.
   */
  reload(id: string): Promise<void> {
    for (const { reloaded } of this.#loads) reloaded.add(id);
    const next = (this.#reloads.get(id) ?? Promise.resolve()).catch(() => {}).then(() => this.#reload(id));
    this.#reloads.set(id, next);
    const forget = (): void => {
      if (this.#reloads.get(id) === next) this.#reloads.delete(id);
    };
    next.then(forget, () => {
      for (const { failed } of this.#loads) failed.add(id);
      forget();
    });
    return next;
  }

  async #reload(id: string): Promise<void> {
    const [row] = await loadInstalled(this.#db, id);
    if (row === undefined) return this.drop(id);
    this.#put(row.plugin, row.version, row.settings);
    // Its first execution should not have to wait for the compiler.
    void this.compileAhead(id);
  }

  /** Compiles the installed version of a plugin unless that is done; a failure shows when it runs. */
  async compileAhead(id: string): Promise<void> {
    const plugin = this.#plugins.get(id);
    if (plugin?.enabled === true) await this.loadModule(plugin.moduleId).catch(() => {});
  }

  #put(plugin: PluginRow, version: VersionRow, settings: ReadonlyMap<string, TriggerSettings>): void {
    const secrets = openSecrets(this.#box, version);
    const before = this.#plugins.get(plugin.id);
    const config = { ...version.config, ...secrets.fields };
    const same = before?.versionId === version.id && isDeepStrictEqual(before.config, config);
    const installed = assemble(
      same ? before.moduleId : this.#nextModuleId++,
      plugin,
      version,
      secrets,
      settings,
      this.#ownOrigin(plugin.id),
    );
    this.#sources.set(installed.moduleId, {
      versionId: version.id,
      pluginId: plugin.id,
      wasmKey: version.wasmKey,
      runnable: version.runnable,
      config,
    });
    this.#plugins.set(plugin.id, installed);
    if (before !== undefined && !same) this.#forgetLater(before.moduleId);
  }

  /** Removes a plugin from memory: it was uninstalled, or cannot be read. */
  drop(id: string): void {
    const before = this.#plugins.get(id);
    this.#plugins.delete(id);
    if (before !== undefined) this.#forgetLater(before.moduleId);
  }

  /** Keeps the old version loadable until the deadline of its last execution. */
  #forgetLater(moduleId: number): void {
    setTimeout(() => {
      this.#forget(moduleId);
      // Lanes that have run it hold it still.
      this.onModulesRemoved();
    }, 60_000).unref();
  }

  #forget(moduleId: number): void {
    this.#sources.delete(moduleId);
    this.#modules.forget(moduleId);
  }

  /**
   * Registers a module that is not installed, for `plugin_describe` at upload. @returns its id, and a function that
   * removes it
   */
  lend(wasmKey: string, runnable: Runnable): [number, () => void] {
    const id = this.#nextModuleId++;
    this.#sources.set(id, {
      versionId: 0,
      pluginId: '',
      wasmKey,
      runnable,
      config: {},
    });
    return [id, () => this.#forget(id)];
  }

  /** The compiled module of a version. Compiles it at its first use, after checking the SHA-256 of the bytes. */
  loadModule(id: number): Promise<LoadedModule> {
    return this.#modules.get(id);
  }

  /** Notes that a module is used, so that others are removed before it. */
  useModule(id: number): void {
    this.#modules.use(id);
  }

  /**
   * Compiles plugins one after another, the first first, as long as there is ample room.
   *
   * @param signal ends it
   */
  async compileAll(ids: readonly string[], signal: AbortSignal): Promise<void> {
    for (const id of ids) {
      if (signal.aborted || !this.#modules.isHalfEmpty) return;
      await this.compileAhead(id);
    }
    // The first is to be removed last.
    for (const id of ids.toReversed()) this.#modules.use(this.#plugins.get(id)?.moduleId ?? 0);
  }

  async #compile(id: number): Promise<CompiledModule> {
    const source = this.#sources.get(id);
    if (source === undefined) throw new Error(`module ${id} is not installed on this host any more`);
    const { format, refused } = source.runnable;
    if (refused !== undefined) throw new Error(`the stored module is not run any more: ${refused}`);
    if (format !== RUNNABLE_FORMAT)
      throw new Error(
        'the stored module was accepted by an older release and could not be rewritten for this one; upload it again',
      );
    const bytes = await this.#storage.readRunnable(source.wasmKey, source.runnable.sha256);
    const loaded: LoadedModule = {
      id,
      module: await WebAssembly.compile(bytes),
      pluginId: source.pluginId,
      versionId: source.versionId,
      memoryPages: source.runnable.memoryPages,
      overwritten: source.runnable.overwritten,
      config: source.config,
    };
    const image = loaded.overwritten.reduce((sum, { end, start }) => sum + end - start, 0);
    return { loaded, codeBytes: bytes.length - image, imageBytes: image };
  }
}
