import { userText } from '../base/principal.ts';
import type { Queryable } from '../db/database.ts';
import { recordedExecution } from './recorded-execution.ts';

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

/** Recordings of executions a user has caused, the newest first, with at most that many bytes together. */
export async function listRecordingsOf(db: Queryable, userId: number, bytesMax: number) {
  const { rows } = await db.query<{ id: number; recording: Buffer }>(
    `SELECT id, recording
     FROM (SELECT id, recording, sum(octet_length(recording)) OVER (ORDER BY id DESC) AS bytes
           FROM execution_records WHERE principal = $1 AND recording IS NOT NULL) r
     WHERE bytes <= $2 ORDER BY id DESC`,
    [userText(userId), bytesMax],
  );
  return rows.map(({ id, recording }) => ({
    execution: Number(id),
    recording: recordedExecution.parse(JSON.parse(recording.toString())),
  }));
}
