import i18next from 'i18next';

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const;

/** An interval for people, in the largest unit that divides it: 15 minutes, 1 hour. */
export function intervalText(seconds: number): string {
  const [unit, size] = UNITS.find(([, s]) => seconds % s === 0) ?? (['second', 1] as const);
  return new Intl.NumberFormat(i18next.language, { style: 'unit', unit, unitDisplay: 'long' }).format(seconds / size);
}
