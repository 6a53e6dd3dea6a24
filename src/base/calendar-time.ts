const CALENDAR = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:\d\d)?)?$/;

/** A day, or a time, in UTC where no zone is named. @returns undefined when the text is no time, or a day that no month has */
export function calendarTime(text: string): Date | undefined {
  const [, day, time = '00:00', zone = 'Z'] = CALENDAR.exec(text) ?? [];
  const date = new Date(`${day}T${time}${zone}`);
  if (day === undefined || Number.isNaN(date.getTime())) return undefined;
  // 2026-02-30 would be the second of March.
  return new Date(`${day}T00:00Z`).toISOString().startsWith(day) ? date : undefined;
}
