import { createHash, randomBytes } from 'node:crypto';
import path from 'node:path';
import { openDatabase } from '../src/db/database.ts';
import { cleanFiles, removeOrphans } from '../src/files/cleaning.ts';
import { readInstallationId } from '../src/files/file-records.ts';
import type { FileStorage } from '../src/files/file-storage.ts';
import { AddressSigner } from '../src/files/signed-address.ts';
import { openDiskStorage } from '../src/files/storage-disk.ts';
import { openBucket, startS3Server } from '../test/support/s3-server.ts';
import { signalDescendant } from '../test/support/signals.ts';
import { makeCaller } from './caller.ts';
import { installFilebox } from './files.ts';
import { embeddedDatabaseUrl, type Host, servingPid, startHost } from './host.ts';

const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms));
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

export type UploadsResult = {
  kills: number;
  complete: number;
  /** Acknowledged as complete, and not there with the bytes that were sent. */
  lost: number;
  /** Ready without having been sent whole. */
  half: number;
  /** Objects in the store after cleaning that belong to no ready file, and the other way round. */
  strange: number;
};

/**
 * Uploads, stores and deletes files while the serving process is killed again and again; looks at what is left.
 *
 * @param next a random whole number below its argument
 */
export async function uploadsUnderKills(
  directory: string,
  kills: number,
  onS3: boolean,
  next: (n: number) => number,
): Promise<UploadsResult> {
  const s3 = onS3 ? await startS3Server(path.join(directory, 's3')) : null;
  const host = await startHost(directory, { ...s3?.env, BOT_FILES_USER_FILES: '100000' });
  try {
    return await run(host, kills, next, s3?.origin ?? null);
  } finally {
    await host.stop();
    await s3?.stop();
  }
}

async function run(host: Host, kills: number, next: (n: number) => number, s3: string | null): Promise<UploadsResult> {
  const base = `http://127.0.0.1:${host.port}`;
  const caller = await makeCaller(host.port);
  await installFilebox(host.port, caller);
  const sent = new Map<string, string>();
  const acknowledged = new Set<string>();
  const deleted = new Set<string>();
  let writing = true;
  /** Null when the host was away in the middle. */
  const ask = async (method: string, where: string, body?: unknown): Promise<Response | null> =>
    await fetch(base + where, {
      method,
      headers: { ...caller.bearer, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(10_000),
    }).catch(() => null);
  const client = async (): Promise<void> => {
    while (writing) {
      const bytes = randomBytes(1 + next(next(4) === 0 ? 3_000_000 : 50_000));
      const init = await ask('POST', '/api/files/init', {
        plugin_id: 'filebox',
        name: 'a',
        mime_type: 'application/octet-stream',
        file_type: 'document',
        size: bytes.length,
      });
      if (init?.status !== 201) {
        await init?.arrayBuffer().catch(() => {});
        await pause(20);
        continue;
      }
      const made = (await init.json().catch(() => null)) as { file_id: string; upload_url: string } | null;
      if (made === null) continue;
      const { file_id: id, upload_url: url } = made;
      const put = await fetch(url, {
        method: 'PUT',
        headers: { 'content-type': 'application/octet-stream' },
        body: bytes,
        signal: AbortSignal.timeout(10_000),
      }).catch(() => null);
      await put?.arrayBuffer().catch(() => {});
      sent.set(id, sha256(bytes));
      // As a careful client does: asked again when no answer came.
      for (let k = 0; k < 1 + next(3); k++) {
        const done = await ask('POST', `/api/files/${id}/complete`);
        await done?.arrayBuffer().catch(() => {});
        if (done?.status === 200) acknowledged.add(id);
        if (done !== null) break;
        await pause(100);
      }
      if (next(5) === 0) {
        deleted.add(id);
        await (await ask('DELETE', `/api/files/${id}`))?.arrayBuffer().catch(() => {});
      }
    }
  };
  const clients = Array.from({ length: 6 }, client);
  let killed = 0;
  while (killed < kills) {
    await pause(400 + next(2500));
    const pid = servingPid(host);
    if (pid === 0) continue;
    signalDescendant(pid, 'SIGKILL');
    killed++;
  }
  await pause(1000);
  writing = false;
  await Promise.all(clients);

  const db = openDatabase(embeddedDatabaseUrl(host.data), 2, () => {});
  const installation = await readInstallationId(db);
  const storage: FileStorage =
    s3 === null
      ? openDiskStorage(path.join(host.data, 'files', installation), new AddressSigner(Buffer.alloc(32)))
      : openBucket(s3, `${installation}/`);
  const { rows } = await db.query<{ id: string; size: string; state: string; digest: string | null }>(
    'SELECT id, size, state, digest FROM files',
  );
  const ready = new Map(
    rows.filter(r => r.state === 'ready').map(r => [r.id, { size: Number(r.size), digest: r.digest }]),
  );
  let [lost, half] = [0, 0];
  const bytesOf = async (id: string): Promise<string | null> => {
    const record = { id, size: 0, ...ready.get(id) } as Parameters<FileStorage['openReader']>[0];
    const reader = storage.openReader(record);
    try {
      return sha256(await reader.read(0, record.size));
    } catch {
      return null;
    } finally {
      await reader.close();
    }
  };
  for (const id of ready.keys()) {
    const digest = await bytesOf(id);
    if (digest !== sent.get(id)) half++;
  }
  for (const id of acknowledged) if (!deleted.has(id) && !ready.has(id)) lost++;

  await db.query("UPDATE files SET expires_at = now() WHERE state = 'pending'");
  const parts = { db, storages: [storage], onError: (error: unknown) => console.error(error) };
  await cleanFiles(parts);
  await removeOrphans(parts, Date.now() + 3 * 3_600_000);
  const kept = new Set<string>();
  let strange = 0;
  for await (const page of storage.list())
    for (const object of page) {
      if (object.uploaded || !ready.has(object.id)) strange++;
      kept.add(object.id);
    }
  for (const id of ready.keys()) if (!kept.has(id)) strange++;
  await db.close();
  return { kills: killed, complete: acknowledged.size, lost, half, strange };
}
