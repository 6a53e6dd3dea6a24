import i18next from 'i18next';

const UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte'] as const;
const STEP = 1024;

/** Bytes for people, in steps of 1024. */
export function bytesText(bytes: number): string {
  let k = 0;
  let n = bytes;
  while (n >= STEP && k < UNITS.length - 1) {
    n /= STEP;
    k++;
  }
  return new Intl.NumberFormat(i18next.language, {
    style: 'unit',
    unit: UNITS[k],
    unitDisplay: k === 0 ? 'long' : 'short',
    maximumFractionDigits: n < 10 && k > 0 ? 1 : 0,
  }).format(n);
}

/** The units of durations, each with the shortest that is shown in it; 90 s stay seconds. */
const DURATIONS = [
  { from: 48 * 3_600_000, unit: 'day', ms: 24 * 3_600_000 },
  { from: 3_600_000, unit: 'hour', ms: 3_600_000 },
  { from: 120_000, unit: 'minute', ms: 60_000 },
  { from: 1000, unit: 'second', ms: 1000 },
] as const;

/** Milliseconds for people: 0.4 ms, 12 ms, 3.2 s, 15 min, 2 days. */
export function durationText(ms: number): string {
  const { ms: one, unit } = DURATIONS.find(d => ms >= d.from) ?? { ms: 1, unit: 'millisecond' };
  const value = ms / one;
  return new Intl.NumberFormat(i18next.language, {
    style: 'unit',
    unit,
    unitDisplay: 'short',
    maximumFractionDigits: value < 10 ? 1 : 0,
  }).format(value);
}

export const numberText = (n: number): string => new Intl.NumberFormat(i18next.language).format(n);

/** A figure that need not be whole: 0.03, 4.2, 1,204. */
export const figureText = (n: number): string =>
  new Intl.NumberFormat(i18next.language, { maximumFractionDigits: n < 1 ? 2 : n < 100 ? 1 : 0 }).format(n);

/** A share from 0 to 1 as a percentage. */
export const shareText = (share: number): string =>
  new Intl.NumberFormat(i18next.language, { style: 'percent', maximumFractionDigits: share < 0.1 ? 1 : 0 }).format(
    share,
  );
