import { z } from 'zod';
import type { OutcomeKind } from '../abi/execution-outcome.ts';

/** Why something is suspended: how its last execution failed, or that its version was running in crashes of the service. */
export const SUSPENSION_REASONS = ['trapped', 'deadline', 'crashed', 'version_crashed'] as const;
export type SuspensionReason = (typeof SUSPENSION_REASONS)[number];

/** A crash of the serving process. */
export const crash = z.object({
  signal: z.string().describe('The signal that ended the process, or V8 for a fatal error of the engine'),
  at: z.string().describe('When, as ISO 8601'),
  out_of_memory: z.boolean().describe('Whether the process was killed for lack of memory'),
});
export type Crash = z.infer<typeof crash>;

const details = z.object({
  failure: z.string().nullable(),
  version: z.string().nullable(),
  crashes: z.array(crash),
});
/** Facts that belong to a reason, for pages that word it themselves. */
export type SuspensionDetails = {
  /** Message of the last failed execution of a trigger; null for versions. */
  failure: string | null;
  /** The version that was running in the crashes; null for triggers. */
  version: string | null;
  crashes: Crash[];
};

/** A suspended trigger or version. `until` null: until an administrator resumes it. */
export type Suspension = SuspensionDetails & {
  pluginId: string;
  /** Empty: the whole plugin. */
  trigger: string;
  /** The version suspended after crashes; 0 for triggers. */
  versionId: number;
  /** The caller for whom a trigger is suspended; null: for all callers. */
  caller: string | null;
  since: Date;
  until: Date | null;
  level: number;
  reason: SuspensionReason;
  /** The reason and its details as an English sentence. */
  cause: string;
  /** Callers whose executions failed. */
  callers: number;
};

/** A suspension as it is stored. */
export type StoredSuspension = Omit<Suspension, 'trigger' | 'caller' | keyof SuspensionDetails> & {
  triggerName: string;
  details: unknown;
};

/** The clocks of hosts are assumed to differ by less. */
const CLOCKS_DIFFER_MS = 60_000;

/**
 * Whether a suspension is active. One that begins in the future was written before the clock was set back, and counts
 * as ended.
 */
export const isActive = (s: Suspension, nowMs: number): boolean =>
  s.until === null || (s.until.getTime() > nowMs && s.since.getTime() <= nowMs + CLOCKS_DIFFER_MS);

/** The details as they are stored with a suspension. */
export const storedDetails = ({ crashes, failure, version }: Suspension): SuspensionDetails => ({
  failure,
  version,
  crashes,
});

export const readSuspension = ({ details: stored, triggerName, ...s }: StoredSuspension): Suspension => ({
  ...s,
  ...details.parse(stored),
  trigger: triggerName,
  caller: null,
});

/** The reason for which executions that end in this way suspend their trigger; undefined: they do not. */
export const reasonOf = (kind: OutcomeKind): SuspensionReason | undefined =>
  kind === 'trapped' || kind === 'deadline' || kind === 'crashed' ? kind : undefined;
