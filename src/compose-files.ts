import path from 'node:path';
import { filesRoutes } from './api/files-api.ts';
import type { Route } from './api/route.ts';
import { type Config, dataPath } from './config.ts';
import type { Database } from './db/database.ts';
import { messageOf } from './errors.ts';
import { fileCleaningJobs } from './files/cleaning-jobs.ts';
import { readInstallationId } from './files/file-records.ts';
import type { FileStorage } from './files/file-storage.ts';
import { Files } from './files/files.ts';
import { AddressSigner } from './files/signed-address.ts';
import { openDiskStorage } from './files/storage-disk.ts';
import { fileHandlers } from './host/files.ts';
import type { HostHandler } from './host/host-functions.ts';
import type { Principals } from './identity/principals.ts';
import type { JobQueue } from './jobs.ts';
import type { Log } from './log.ts';
import type { Request } from './message.ts';
import type { PluginRegistry } from './plugins/registry.ts';

export type FilesParts = {
  db: Database;
  config: Config;
  log: Log;
  /** What addresses are signed with. */
  secretKey: Buffer;
  /** Address of this service as users see it. */
  publicBase(): string;
};

export type ComposedFiles = {
  files: Files;
  handlers: Record<string, HostHandler>;
  jobs: Array<JobQueue<object>>;
  routes(of: { registry: PluginRegistry; principals: Principals }): Route[];
};

const HOST = /^([\w.-]{1,253}|\[[\da-f:.]{2,45}\])(:\d{1,5})?$/i;

/** Builds what keeps files: storage, the feature, its routes, its host functions, its jobs. */
export async function composeFiles({ config, db, log, publicBase, secretKey }: FilesParts): Promise<ComposedFiles> {
  const v = config.values;
  const signer = new AddressSigner(secretKey);
  const installation = await readInstallationId(db);
  const disk = openDiskStorage(path.join(dataPath(config, 'files'), installation), signer);
  const s3: FileStorage | null = null;
  const onError = (error: unknown, what: string): void => log.warn({ error: messageOf(error) }, `${what} failed`);
  const files = new Files({
    db,
    disk,
    s3,
    uploadBytesMax: v['http.max_upload'],
    quotas: {
      userBytes: v['files.user_quota'],
      userFiles: v['files.user_files'],
      pluginBytes: v['files.plugin_quota'],
    },
    uploadSeconds: v['files.upload_seconds'],
    onError,
  });
  /**
   * Whoever announces a file sends its bytes where he has just been: without a public address, what he calls this host. Links others
   * get are never made of what a request says.
   */
  const baseOf = (request: Request): string =>
    v['http.public_url'] === '' && HOST.test(request.headers.host ?? '')
      ? `http://${request.headers.host}`
      : publicBase();
  return {
    files,
    handlers: fileHandlers(files, publicBase),
    jobs: fileCleaningJobs({ db, storages: s3 === null ? [disk] : [disk, s3], onError }, done =>
      log.info(done, 'files were cleaned'),
    ),
    routes: ({ principals, registry }) => filesRoutes({ files, registry, principals, signer, baseOf }),
  };
}
