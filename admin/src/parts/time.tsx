import { Text, Tooltip } from '@mantine/core';
import { createContext, useContext, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { dateLocale } from '../texts/index.ts';

const STEPS: ReadonlyArray<readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number]> = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
];
const REFRESH_MS = 20_000;

function relative(ms: number, language: string): string {
  const seconds = Math.round(ms / 1000);
  const [unit, size] = STEPS.find(([, s]) => Math.abs(seconds) >= s) ?? ['second', 1];
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' });
  return format.format(Math.trunc(seconds / size), unit);
}

/** A day without a time, `2026-09-01`, as people write it. */
export const dayText = (day: string): string =>
  new Date(day).toLocaleDateString(dateLocale(), { dateStyle: 'medium', timeZone: 'UTC' });

/** Where a moment has room for its whole time. */
export const WholeTimes = createContext(false);

/** A moment: how long ago, with the whole time next to it where there is room, otherwise when it is pointed at. */
export function When({ at }: { at: string | null | undefined }) {
  const { i18n, t } = useTranslation();
  const isWhole = useContext(WholeTimes);
  // Only makes it rendered again: a time newer than the last tick would else lie in the future.
  const [, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick(n => n + 1), REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  if (at == null)
    return (
      <Text span inherit c="dimmed">
        {t('common.never')}
      </Text>
    );
  const time = new Date(at);
  const whole = time.toLocaleString(dateLocale(), { dateStyle: 'medium', timeStyle: 'medium' });
  const ago = relative(time.getTime() - Date.now(), i18n.language);
  if (isWhole)
    return (
      <time dateTime={at}>
        {whole}{' '}
        <Text span inherit c="dimmed">
          ({ago})
        </Text>
      </time>
    );
  return (
    <Tooltip label={whole} events={{ hover: true, focus: false, touch: true }}>
      <time dateTime={at} style={{ whiteSpace: 'nowrap' }}>
        {ago}
      </time>
    </Tooltip>
  );
}
