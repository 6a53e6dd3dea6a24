import type { Queryable } from '../db/database.ts';

/** Whether an execution can be run again. */
export async function isRecorded(db: Queryable, pluginId: string, id: number): Promise<boolean> {
  const { rowCount } = await db.query(
    'SELECT 1 FROM execution_records WHERE plugin_id = $1 AND id = $2 AND recording IS NOT NULL',
    [pluginId, id],
  );
  return rowCount === 1;
}

/** The recording of an execution, as JSON; undefined without one. */
export async function findRecording(db: Queryable, pluginId: string, id: number): Promise<string | undefined> {
  const { rows } = await db.query<{ recording: Buffer }>(
    'SELECT recording FROM execution_records WHERE plugin_id = $1 AND id = $2 AND recording IS NOT NULL',
    [pluginId, id],
  );
  return rows[0]?.recording.toString();
}
