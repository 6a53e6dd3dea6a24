import type { Queryable } from '../db/database.ts';
import { findRows } from '../db/rows.ts';

/** How often a serving process writes its row. */
export const BEAT_MS = 2000;
/** A process that has written nothing for that long is silent. */
const SILENT_SECONDS = 5;
/** How long a host that fell silent is still listed. */
const LISTED_HOURS = 24;
/** How long the row of a process stays whose host goes on without it. */
const ENDED_SECONDS = 10;

/** What a serving process does at the moment. */
export type ProcessLoad = {
  executionsInFlight: number;
  lanes: number;
  connections: number;
  residentBytes: number;
  /** Processor time used since the beat before, as a share of one processor. */
  cpu: number;
  /** Whether it is about to end, and takes requests for a while. */
  draining: boolean;
};

export type HostProcess = {
  hostId: number;
  pid: number;
  hostName: string;
  address: string;
  version: string;
  startedAt: Date;
  load: ProcessLoad;
  /** Work that one host at a time does, and this process does now. */
  duties: readonly string[];
};

export type SeenProcess = HostProcess & { seenAt: Date; isSilent: boolean };

/** Writes the row of a process, and removes rows of processes that have ended. */
export async function beat(db: Queryable, p: HostProcess): Promise<void> {
  await db.query(
    `INSERT INTO host_processes (host_id, pid, host_name, address, version, started_at, load, duties)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT (host_id, pid) DO UPDATE SET seen_at = now(), host_name = $3, address = $4, version = $5, started_at = $6,
       load = $7, duties = $8`,
    [p.hostId, p.pid, p.hostName, p.address, p.version, p.startedAt, JSON.stringify(p.load), p.duties],
  );
  await db.query(
    `DELETE FROM host_processes WHERE host_id = $1 AND seen_at < now() - make_interval(secs => $2)
       OR seen_at < now() - make_interval(hours => $3)`,
    [p.hostId, ENDED_SECONDS, LISTED_HOURS],
  );
  // The clock was set back: a host that has ended since would look alive until the clock has caught up.
  await db.query('UPDATE host_processes SET seen_at = now() WHERE seen_at > now() + make_interval(secs => $1)', [
    SILENT_SECONDS,
  ]);
}

/** Forgets a host whose processes are all silent. @returns how many processes it had; null when one of them is not */
export async function forgetHost(db: Queryable, hostId: number): Promise<number | null> {
  const { rows } = await db.query<{ gone: number; left: number }>(
    `WITH alive AS (SELECT FROM host_processes WHERE host_id = $1 AND seen_at >= now() - make_interval(secs => $2)),
       gone AS (DELETE FROM host_processes WHERE host_id = $1 AND NOT EXISTS (SELECT FROM alive) RETURNING 1)
     SELECT (SELECT count(*)::int FROM gone) AS gone, (SELECT count(*)::int FROM alive) AS left`,
    [hostId, SILENT_SECONDS],
  );
  const { gone = 0, left = 0 } = rows[0] ?? {};
  return left > 0 ? null : gone;
}

/** The process ends in order: it is not missed. */
export async function endBeats(db: Queryable, hostId: number, pid: number): Promise<void> {
  await db.query('DELETE FROM host_processes WHERE host_id = $1 AND pid = $2', [hostId, pid]);
}

/** The processes of all hosts, those of the oldest host first. */
export async function listProcesses(db: Queryable): Promise<SeenProcess[]> {
  return await findRows<SeenProcess>(
    db,
    `SELECT *, seen_at < now() - make_interval(secs => $1) AS is_silent FROM host_processes
     ORDER BY min(started_at) OVER (PARTITION BY host_id), host_id, started_at, pid`,
    [SILENT_SECONDS],
  );
}
