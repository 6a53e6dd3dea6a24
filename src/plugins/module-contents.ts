import { createHash } from 'node:crypto';
import fsp from 'node:fs/promises';
import { moveIntoPlace } from '../base/move-into-place.ts';
import type { Database, Queryable } from '../db/database.ts';
import { lockNamedForTransaction } from '../db/locks.ts';

const PART_BYTES = 1024 * 1024;

/** Contents that belong to no version are kept that long: a version may be about to be stored. */
const ORPHAN_MINUTES = 60;

/** The digests that versions name: of the upload, of what runs, and of the frontend. */
const NAMED = `SELECT sha256 FROM plugin_versions UNION SELECT runnable ->> 'sha256' FROM plugin_versions
  UNION SELECT frontend ->> 'sha256' FROM plugin_versions WHERE frontend IS NOT NULL
  UNION SELECT sha256 FROM uninstalled_versions UNION SELECT runnable ->> 'sha256' FROM uninstalled_versions
  UNION SELECT frontend ->> 'sha256' FROM uninstalled_versions WHERE frontend IS NOT NULL`;

/**
 * Bytes of modules and frontends in the database, by their SHA-256: a host that lacks a file gets it from here, so hosts
 * share no folder (docs/operating.md "Several hosts").
 */
export class ModuleContents {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /**
   * Stores the bytes of a file inside the caller's transaction, unless they are stored already.
   *
   * @throws Error when the file has another digest
   */
  async put(client: Queryable, file: string, sha256: string): Promise<void> {
    // Hosts that store the same module at once wait for the first.
    await lockNamedForTransaction(client, 'module', sha256);
    const { rowCount } = await client.query('UPDATE stored_contents SET stored_at = now() WHERE sha256 = $1', [sha256]);
    if (rowCount !== 0) return;
    const source = await fsp.open(file);
    try {
      const { size } = await source.stat();
      await client.query('INSERT INTO stored_contents (sha256, size) VALUES ($1, $2)', [sha256, size]);
      const hash = createHash('sha256');
      for (let part = 0; part * PART_BYTES < size; part++) {
        const { buffer, bytesRead } = await source.read(Buffer.alloc(PART_BYTES), 0, PART_BYTES, part * PART_BYTES);
        const bytes = buffer.subarray(0, bytesRead);
        hash.update(bytes);
        await client.query('INSERT INTO stored_content_parts (sha256, part, bytes) VALUES ($1, $2, $3)', [
          sha256,
          part,
          bytes,
        ]);
      }
      if (hash.digest('hex') !== sha256) throw new Error(`${file} has changed since it was checked`);
    } finally {
      await source.close();
    }
  }

  /**
   * Writes stored bytes to a file, which has its name only when it is complete.
   *
   * @returns whether they are stored
   * @throws Error when the database holds other bytes than it says
   */
  async fetch(sha256: string, file: string, partial: string): Promise<boolean> {
    const { rows: found } = await this.#db.query<{ size: string }>(
      'SELECT size FROM stored_contents WHERE sha256 = $1',
      [sha256],
    );
    if (found[0] === undefined) return false;
    const hash = createHash('sha256');
    const target = await fsp.open(partial, 'w');
    try {
      for (let part = 0; part * PART_BYTES < Number(found[0].size); part++) {
        const { rows } = await this.#db.query<{ bytes: Buffer }>(
          'SELECT bytes FROM stored_content_parts WHERE sha256 = $1 AND part = $2',
          [sha256, part],
        );
        const bytes = rows[0]?.bytes ?? Buffer.alloc(0);
        hash.update(bytes);
        // `write` may write less than all on a disk that fills up.
        await target.writeFile(bytes);
      }
    } catch (error) {
      await fsp.rm(partial, { force: true });
      throw error;
    } finally {
      await target.close();
    }
    if (hash.digest('hex') !== sha256) {
      await fsp.rm(partial, { force: true });
      throw new Error(`the database holds other bytes for the module or frontend with SHA-256 ${sha256}`);
    }
    await moveIntoPlace(partial, file);
    return true;
  }

  /** Which of these digests are not stored. */
  async missing(digests: readonly string[]): Promise<Set<string>> {
    const { rows } = await this.#db.query<{ sha256: string }>(
      'SELECT sha256 FROM unnest($1::text[]) AS d (sha256) WHERE NOT EXISTS (SELECT 1 FROM stored_contents s WHERE s.sha256 = d.sha256)',
      [digests],
    );
    return new Set(rows.map(r => r.sha256));
  }

  /** Removes what no version names any more. @returns how many files */
  async removeOrphans(): Promise<number> {
    const { rowCount } = await this.#db.query(
      `DELETE FROM stored_contents WHERE stored_at < now() - make_interval(mins => $1) AND sha256 NOT IN (${NAMED})`,
      [ORPHAN_MINUTES],
    );
    return rowCount ?? 0;
  }
}
