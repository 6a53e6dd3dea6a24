import { useComputedColorScheme } from '@mantine/core';
import { useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import './chart.css';

export type Line = {
  label: string;
  /** A colour of the kit. */
  color: string;
  values: ReadonlyArray<number | null>;
  isFilled?: boolean;
  /** Lengths of strokes and gaps in pixels: what lies under it stays visible where both have the same values. */
  dash?: number[];
};

export type ChartProps = {
  /** What it shows, in one sentence with its figures, for those who do not see it. */
  label: string;
  /** Seconds since 1970, ascending. */
  times: readonly number[];
  lines: readonly Line[];
  /** Whether the axis is logarithmic: durations from half a millisecond to seconds. */
  isLogarithmic?: boolean;
  format: (value: number) => string;
};

const HEIGHT = 180;
const AXIS_WIDTH = 64;

/** Lines over time. The figures under the pointer stand below it. */
export default function Chart({ format, isLogarithmic = false, label, lines, times }: ChartProps) {
  const { i18n, t } = useTranslation();
  const scheme = useComputedColorScheme('light');
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const chart = new uPlot(
      optionsOf({
        ...{ format, isLogarithmic, lines },
        ...{ isDark: scheme === 'dark', language: i18n.language, time: t('activity.time'), width: element.clientWidth },
      }),
      [[...times], ...lines.map(l => [...l.values])],
      element,
    );
    const sizes = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: HEIGHT }));
    sizes.observe(element);
    return () => {
      sizes.disconnect();
      chart.destroy();
    };
  }, [format, i18n.language, isLogarithmic, lines, scheme, t, times]);
  return <div ref={place} className="chart" role="img" aria-label={label} style={{ minHeight: HEIGHT }} />;
}

function optionsOf(of: {
  lines: readonly Line[];
  format: (value: number) => string;
  isLogarithmic: boolean;
  isDark: boolean;
  language: string;
  time: string;
  width: number;
}): uPlot.Options {
  const { format, isDark, isLogarithmic, language, lines, time, width } = of;
  const styles = getComputedStyle(document.documentElement);
  const colour = (name: string): string => styles.getPropertyValue(`--mantine-color-${name}`).trim();
  const axis = { stroke: colour(isDark ? 'dark-1' : 'gray-7'), grid: { stroke: colour(isDark ? 'dark-4' : 'gray-2') } };
  const whole = new Intl.DateTimeFormat(language, { dateStyle: 'short', timeStyle: 'short', hourCycle: 'h23' });
  return {
    width,
    height: HEIGHT,
    cursor: { points: { size: 7 }, drag: { x: false, y: false } },
    scales: {
      x: { time: true },
      y: isLogarithmic ? { distr: 3 } : { range: (_, __, max) => [0, Math.max(max, 1) * 1.1] },
    },
    axes: [
      { ...axis, values: (_, ticks) => tickTexts(ticks, language) },
      { ...axis, size: AXIS_WIDTH, values: (_, ticks) => ticks.map(v => (v === null ? '' : format(v))) },
    ],
    series: [
      { label: time, value: (_, v) => (v === null ? '' : whole.format(v * 1000)) },
      ...lines.map(
        (l): uPlot.Series => ({
          label: l.label,
          stroke: colour(`${l.color}-${isDark ? 4 : 7}`),
          width: 1.5,
          ...(l.dash === undefined ? {} : { dash: l.dash }),
          ...(l.isFilled === true ? { fill: `color-mix(in srgb, ${colour(`${l.color}-6`)} 18%, transparent)` } : {}),
          // Without a pointer over the chart only the colours are explained.
          value: (_, v, __, at) => (at === null ? '' : v === null || v === undefined ? '–' : format(v)),
          spanGaps: false,
          // A value between two gaps has no line: a point shows it.
          points: { show: true, size: 5, filter: (u, at) => lonePoints(u.data[at] ?? []) },
        }),
      ),
    ],
  };
}

/** Places of values that have none next to them. */
export const lonePoints = (values: ArrayLike<number | null | undefined>): number[] =>
  Array.from(values, (v, k) => (isNone(v) || !isNone(values[k - 1]) || !isNone(values[k + 1]) ? -1 : k)).filter(
    k => k >= 0,
  );
const isNone = (v: number | null | undefined): boolean => v === null || v === undefined;

/** Times of day; where a day begins, the day. */
function tickTexts(ticks: readonly number[], language: string): string[] {
  const time = new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
  const day = new Intl.DateTimeFormat(language, { day: 'numeric', month: 'short' });
  return ticks.map(s => {
    const at = new Date(s * 1000);
    return at.getHours() === 0 && at.getMinutes() === 0 ? day.format(at) : time.format(at);
  });
}
