import { CallTooLate, Gatherer } from '../base/gatherer.ts';
import type { Database } from '../db/database.ts';

/** Reads of the key-value store that come at the same time, from executions of one plugin, are one statement. */

const GET = {
  name: 'kv_get',
  text: 'SELECT value FROM plugin_kv WHERE plugin_id = $1 AND key = $2 AND (expires_at IS NULL OR expires_at > now())',
};
const GET_TOGETHER = {
  name: 'kv_get_together',
  text: `SELECT key, CASE WHEN octet_length(value) <= $3 THEN value END AS value FROM plugin_kv
         WHERE plugin_id = $1 AND key = ANY ($2::text[]) AND (expires_at IS NULL OR expires_at > now())`,
};

/** Larger values are read by themselves, so that a small one does not wait for its neighbour's megabyte. */
const TOGETHER_BYTES_MAX = 32 * 1024;
const READS_MAX = 100;
/** With two, one batch is collected while the database works on another. */
const BATCHES_MAX = 2;

type Read = {
  key: string;
  deadline: number;
  resolve(value: Buffer | undefined): void;
  reject(error: unknown): void;
};

/** Reads the value of a key; undefined for one that is absent or has expired. @param deadline of the execution, in ms of `performance.now()` */
export type KvRead = (pluginId: string, key: string, deadline: number) => Promise<Buffer | undefined>;

/** Gathers reads by plugin: those of one event-loop turn are one statement. */
export function makeKvReads(db: Database): KvRead {
  const readAlone = async (pluginId: string, key: string): Promise<Buffer | undefined> =>
    (await db.query<{ value: Buffer }>({ ...GET, values: [pluginId, key] })).rows[0]?.value;

  const readTogether = async (pluginId: string, byKey: ReadonlyMap<string, Read[]>): Promise<void> => {
    const { rows } = await db.query<{ key: string; value: Buffer | null }>({
      ...GET_TOGETHER,
      values: [pluginId, [...byKey.keys()], TOGETHER_BYTES_MAX],
    });
    const found = new Map(rows.map(row => [row.key, row.value]));
    for (const [key, group] of byKey) {
      const value = found.get(key);
      if (value === null) settle(group, readAlone(pluginId, key));
      else for (const read of group) read.resolve(value);
    }
  };

  const reads = new Gatherer<Read>({
    batchesMax: BATCHES_MAX,
    take: waiting => waiting.splice(0, READS_MAX),
    isOver: read => performance.now() >= read.deadline,
    drop: read => read.reject(new CallTooLate()),
    async run(pluginId, batch) {
      const byKey = Map.groupBy(batch, read => read.key);
      if (byKey.size === 1) return settle(batch, readAlone(pluginId, batch[0]!.key));
      await readTogether(pluginId, byKey).catch((error: unknown) => {
        for (const read of batch) read.reject(error);
      });
    },
  });
  return (pluginId, key, deadline) =>
    new Promise((resolve, reject) => reads.add(pluginId, { key, deadline, resolve, reject }));
}

/** Gives every read of one key the same answer. */
async function settle(group: Read[], answer: Promise<Buffer | undefined>): Promise<void> {
  try {
    const value = await answer;
    for (const read of group) read.resolve(value);
  } catch (error) {
    for (const read of group) read.reject(error);
  }
}
