import path from 'node:path';
import { type Config, dataPath } from '../config/load.ts';
import type { Database } from '../db/database.ts';
import { type FileRecord, listFilesOf, readInstallationId } from '../files/file-records.ts';
import type { FileStorage } from '../files/file-storage.ts';
import { AddressSigner } from '../files/signed-address.ts';
import { openDiskStorage } from '../files/storage-disk.ts';
import { s3Of } from './files.ts';
import type { Person } from './person-data.ts';

/** Their files that are ready. */
export const personFiles = async (db: Database, { user }: Person): Promise<FileRecord[]> =>
  user === null ? [] : (await listFilesOf(db, user.id)).filter(f => f.state === 'ready');

/** The stores of files, as the configuration names them. */
export async function storageOf(config: Config, db: Database): Promise<{ storages: FileStorage[]; close(): void }> {
  const installation = await readInstallationId(db);
  // Nothing is signed here.
  const signer = new AddressSigner(Buffer.alloc(32));
  const disk = openDiskStorage(path.join(dataPath(config, 'files'), installation), signer);
  const s3 = await s3Of(config, installation);
  return { storages: s3 === null ? [disk] : [disk, s3], close: () => s3?.close() };
}
