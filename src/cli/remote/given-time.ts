import { calendarTime } from '../../base/calendar-time.ts';
import { UsageError } from '../../base/errors.ts';
import { durationMs, isDuration } from '../../config/values.ts';

/** Times that options name: a length of time from now, or a time of the calendar, in UTC where no zone is named. */

/** @param sign 1 for a time ahead, -1 for one that has passed */
function timeOf(text: string, sign: 1 | -1, nowMs: number): Date | undefined {
  if (!isDuration(text)) return calendarTime(text);
  const date = new Date(nowMs + sign * durationMs(text));
  return Number.isNaN(date.getTime()) ? undefined : date;
}

/** From when on: `1h` is an hour ago. @throws UsageError */
export function sinceTime(text: string, nowMs = Date.now()): Date {
  const date = timeOf(text, -1, nowMs);
  if (date !== undefined) return date;
  throw new UsageError(
    `--since is ${JSON.stringify(text)}; it must be a length of time like 1h, 90m or 7d, or a time in UTC like 2026-01-31T08:00:00Z`,
  );
}

/** Until when: `90d` is in 90 days. @returns null for never @throws UsageError */
export function expiryTime(text: string, nowMs = Date.now()): Date | null {
  if (text === 'never') return null;
  const date = timeOf(text, 1, nowMs);
  const right = 'it must be a length of time like 90d, a time in UTC like 2027-01-31T12:00:00Z, or never';
  if (date === undefined) throw new UsageError(`--expires is ${JSON.stringify(text)}; ${right}`);
  if (date.getTime() > nowMs) return date;
  throw new UsageError(`--expires is ${JSON.stringify(text)}, which has passed; ${right}`);
}
