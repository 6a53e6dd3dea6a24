import type { Database } from '../db/database.ts';
import { Gatherer } from './gatherer.ts';

/** Reads of the key-value store that come at the same time are one statement. */

const GET = {
  name: 'kv_get',
  text: 'SELECT value FROM plugin_kv WHERE plugin_id = $1 AND key = $2 AND (expires_at IS NULL OR expires_at > now())',
};
/** LATERAL with LIMIT looks each key up in the index, whatever the planner thinks of the table. */
const GET_TOGETHER = {
  name: 'kv_get_together',
  text: `SELECT asked.place::int, CASE WHEN octet_length(found.value) <= $3 THEN found.value END AS value
         FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS asked (plugin_id, key, place)
         CROSS JOIN LATERAL (SELECT value FROM plugin_kv WHERE plugin_id = asked.plugin_id AND key = asked.key
           AND (expires_at IS NULL OR expires_at > now()) LIMIT 1) AS found`,
};

/** Larger values are read by themselves, so that a small one does not wait for its neighbour's megabyte. */
const TOGETHER_BYTES_MAX = 32 * 1024;
const KEYS_MAX = 100;
/** With two, one batch is collected while the database works on another. */
const BATCHES_MAX = 2;

type Read = {
  pluginId: string;
  key: string;
  resolve(value: Buffer | undefined): void;
  reject(error: unknown): void;
};

/** @returns a function that reads the value of a key; undefined for one that is absent or has expired */
export function makeKvReads(db: Database): (pluginId: string, key: string) => Promise<Buffer | undefined> {
  const readAlone = async (pluginId: string, key: string): Promise<Buffer | undefined> =>
    (await db.query<{ value: Buffer }>({ ...GET, values: [pluginId, key] })).rows[0]?.value;

  const readTogether = async (groups: Read[][]): Promise<void> => {
    const firsts = groups.map(group => group[0]!);
    const { rows } = await db.query<{ place: number; value: Buffer | null }>({
      ...GET_TOGETHER,
      values: [firsts.map(r => r.pluginId), firsts.map(r => r.key), TOGETHER_BYTES_MAX],
    });
    const found = new Map(rows.map(row => [row.place, row.value]));
    for (const [k, group] of groups.entries()) {
      const value = found.get(k + 1);
      if (value === null) settle(group, readAlone(group[0]!.pluginId, group[0]!.key));
      else for (const read of group) read.resolve(value);
    }
  };

  const reads = new Gatherer<Read>({
    batchesMax: BATCHES_MAX,
    take: waiting => waiting.splice(0, KEYS_MAX),
    async run(batch) {
      const groups = [...Map.groupBy(batch, ({ key, pluginId }) => `${pluginId}\0${key}`).values()];
      const [first] = groups;
      if (first !== undefined && groups.length === 1)
        return settle(first, readAlone(first[0]!.pluginId, first[0]!.key));
      await readTogether(groups).catch((error: unknown) => {
        for (const read of batch) read.reject(error);
      });
    },
  });
  return (pluginId, key) => new Promise((resolve, reject) => reads.add({ pluginId, key, resolve, reject }));
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
