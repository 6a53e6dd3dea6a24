import type { RecordedCaller } from '../authz/rehearse-policy.ts';
import type { Queryable } from '../db/database.ts';

/** Records read, the newest first. */
export const RECORDED_CALLS_MAX = 100_000;

/**
 * Callers of the newest records, those with the most calls first. Leaves out what another rule than the policy refused,
 * callers that are erased, and plugins.
 */
export async function listRecordedCallers(
  db: Queryable,
  of: { pluginId: string; trigger: string; since: Date },
  callersMax: number,
): Promise<RecordedCaller[]> {
  const { rows } = await db.query<RecordedCaller>(
    `SELECT principal, count(*) FILTER (WHERE outcome <> 'refused')::int AS admitted,
       count(*) FILTER (WHERE outcome = 'refused')::int AS refused
     FROM (
       SELECT principal, outcome, decision FROM execution_records
       WHERE plugin_id = $1 AND trigger_name = $2 AND started_at >= $3 ORDER BY id DESC LIMIT ${RECORDED_CALLS_MAX}
     ) AS newest
     WHERE (principal = 'public' OR principal LIKE 'user:%' OR principal LIKE 'service:%')
       AND NOT (outcome = 'refused'
         AND (coalesce(decision->>'reason', '') IN ('disabled', 'unknown_user', 'roles', 'unavailable')
           OR coalesce(decision->>'kind', '') = 'unavailable'))
     GROUP BY principal ORDER BY count(*) DESC, principal LIMIT $4`,
    [of.pluginId, of.trigger, of.since, callersMax],
  );
  return rows;
}
