import { endJsonThread } from '../api/contract/json-thread.ts';
import type { Log } from '../base/log.ts';
import { Seldom } from '../base/seldom.ts';
import type { Tracing } from '../base/tracing.ts';
import { type Config, dataPath, publicBaseOf } from '../config/load.ts';
import { type Database, openDatabase } from '../db/database.ts';
import { migrate } from '../db/migrate.ts';
import { NotificationListener } from '../db/notifications.ts';
import { roleWeakness } from '../db/service-role.ts';
import { Jobs } from '../jobs.ts';
import { ModuleContents } from '../plugins/module-contents.ts';
import { type ModuleStorage, openModuleStorage } from '../plugins/module-storage.ts';
import { makeSecretBox, type SecretBox } from '../secrets/secret-box.ts';
import { keyPlaceOf, openSecretKey } from './secrets.ts';

/** A database that ends takes all connections along. */
const CONNECTIONS_MS = 5000;

/** What every feature is built from. */
export type Core = {
  readonly config: Config;
  readonly log: Log;
  readonly db: Database;
  readonly jobs: Jobs;
  readonly changes: NotificationListener;
  readonly storage: ModuleStorage;
  readonly contents: ModuleContents;
  /** Whether no other host ever uses this database. */
  readonly isAlone: boolean;
  readonly secretKey: Buffer;
  readonly secrets: SecretBox;
  /** Null without `tracing.endpoint`. */
  readonly tracing: Tracing | null;
  /** Port requests come in at: the configured one until the server listens. */
  port: number;
  /** Address of this service as users see it. */
  publicBase(): string;
  close(): Promise<void>;
};

/** The library that makes spans is loaded only where they are wanted: it takes time to load, and memory. */
async function openTracingOf({ values: v }: Config, log: Log): Promise<Tracing | null> {
  if (v['tracing.endpoint'] === '') return null;
  const { openTracing } = await import('../base/open-tracing.ts');
  return openTracing(v['tracing.endpoint'], v['tracing.ratio'], log);
}

/**
 * Opens the database and brings it up to date.
 *
 * @param development of an author's own service: no other host ever uses its database, which holds no copies of modules then
 * @throws SecretKeyError, SchemaTooNew and what the database answers
 */
export async function openCore(config: Config, log: Log, development: { base(): string | null } | null): Promise<Core> {
  const isAlone = development !== null;
  const v = config.values;
  const seldom = new Seldom(CONNECTIONS_MS);
  const db = openDatabase(v['database.url'], v['database.pool_size'], error =>
    seldom.line(error.message, more => log.warn({ error: error.message, ...more }, 'a database connection was lost')),
  );
  const applied = await migrate(db);
  if (applied.length > 0) log.info({ applied }, 'database migrated');
  const weakness = await roleWeakness(db);
  if (weakness !== null) log.warn({}, weakness);
  const secretKey = await openSecretKey(db, keyPlaceOf(config));
  const changes = new NotificationListener();
  const contents = new ModuleContents(db);
  const core: Core = {
    config,
    log,
    db,
    jobs: new Jobs(db, log),
    changes,
    storage: openModuleStorage(dataPath(config, 'modules'), isAlone ? null : contents),
    contents,
    isAlone,
    secretKey,
    secrets: makeSecretBox(secretKey),
    tracing: await openTracingOf(config, log),
    port: v['http.port'],
    publicBase: () => development?.base() ?? publicBaseOf(config, core.port),
    async close() {
      await changes.close();
      await endJsonThread();
      await db.close();
      await core.tracing?.close();
    },
  };
  return core;
}
