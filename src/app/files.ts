import path from 'node:path';
import type { HealthCheck } from '../api/operation/health-api.ts';
import { filesRoutes } from '../api/plugins/files-api.ts';
import { pluginFilesRoutes } from '../api/plugins/plugin-files-api.ts';
import { messageOf } from '../base/errors.ts';
import { type Config, dataPath } from '../config/load.ts';
import { fileCleaningJobs } from '../files/cleaning-jobs.ts';
import { readInstallationId } from '../files/file-records.ts';
import { Files } from '../files/files.ts';
import { AddressSigner } from '../files/signed-address.ts';
import { openDiskStorage } from '../files/storage-disk.ts';
import type { S3Storage } from '../files/storage-s3.ts';
import { fileHandlers } from '../host/files.ts';
import type { Request } from '../http/message.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';
import { remembered } from './health.ts';
import type { Identity } from './identity.ts';
import type { Plugins } from './plugins.ts';

export type ComposedFiles = Feature & {
  files: Files;
  /** Origins other than this host that browsers upload files to and download files from. */
  origins: readonly string[];
  /** Whether the store of S3 answers; empty without one. */
  storeHealth: readonly HealthCheck[];
};

/** The store is asked once in this time whether it answers. */
const PING_MS = 2000;
const PING_SILENT_MS = 1500;
/** An object is written and read once in this time, and at each question while that fails. */
const PROBE_MS = 60_000;

/** Looks whether a store of S3 works. @returns what is wrong; null when nothing is */
function storeProblem(s3: S3Storage): () => Promise<string | null> {
  let goodUntil = Number.NEGATIVE_INFINITY;
  /** One at a time, however long the store takes. */
  let probe: Promise<void> | null = null;
  return remembered(PING_MS, async () => {
    try {
      await s3.ping(AbortSignal.timeout(PING_SILENT_MS));
      if (performance.now() < goodUntil) return null;
      probe ??= s3.probe().finally(() => {
        probe = null;
      });
      await probe;
      goodUntil = performance.now() + PROBE_MS;
      return null;
    } catch (error) {
      goodUntil = Number.NEGATIVE_INFINITY;
      return `the file store does not answer: ${messageOf(error)}`;
    }
  });
}

/** The store of `s3.bucket`, or null. */
export async function s3Of(config: Config, installation: string): Promise<S3Storage | null> {
  const v = config.values;
  if (v['s3.bucket'] === '') return null;
  // Loading the library takes a third of a second, which only those wait for who use it.
  const { openS3Storage } = await import('../files/storage-s3.ts');
  return openS3Storage({
    endpoint: v['s3.endpoint'],
    publicEndpoint: v['s3.public_endpoint'],
    region: v['s3.region'],
    bucket: v['s3.bucket'],
    accessKeyId: v['s3.access_key_id'],
    secretAccessKey: v['s3.secret_access_key'],
    pathStyle: v['s3.path_style'],
    prefix: `${v['s3.prefix']}${installation}/`,
  });
}

const HOST = /^([\w.-]{1,253}|\[[\da-f:.]{2,45}\])(:\d{1,5})?$/i;

/** Builds what keeps files: storage, the feature, its routes, its host functions, its jobs. */
export async function composeFiles(
  { config, db, log, publicBase, secretKey }: Core,
  { principals, registry }: Pick<Plugins, 'registry'> & Pick<Identity, 'principals'>,
): Promise<ComposedFiles> {
  const v = config.values;
  const signer = new AddressSigner(secretKey);
  const installation = await readInstallationId(db);
  const disk = openDiskStorage(path.join(dataPath(config, 'files'), installation), signer);
  const s3 = await s3Of(config, installation);
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
    directLinks: v['files.direct_links'],
    onError,
  });
  /**
   * A client that announces a file sends its bytes to the same place: without a public address, what it calls this
   * host, which no proxy has to vouch for, since no other client gets the answer. Links others get are never made of
   * what a request says.
   */
  const baseOf = (request: Request): string =>
    v['http.public_url'] === '' && HOST.test(request.headers.host ?? '')
      ? `${v['http.trusted_proxies'].length > 0 && request.headers['x-forwarded-proto'] === 'https' ? 'https' : 'http'}://${request.headers.host}`
      : publicBase();
  return {
    files,
    hostFunctions: fileHandlers(files, publicBase),
    jobs: fileCleaningJobs({ db, storages: s3 === null ? [disk] : [disk, s3], onError }, done =>
      log.info(done, 'files were cleaned'),
    ),
    close: () => s3?.close(),
    origins: s3 === null ? [] : [s3.publicOrigin],
    storeHealth: s3 === null ? [] : [{ name: 'files', needed: false, look: storeProblem(s3) }],
    routes: [...filesRoutes({ files, registry, principals, signer, baseOf }), ...pluginFilesRoutes({ db, files })],
  };
}
