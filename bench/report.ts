import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { generator } from './load.ts';

/** What a row has to reach: the bound it must keep, and the aim; `also` is printed behind them. */
export type Bound = ({ atLeast: number } | { atMost: number }) & { aim?: number; unit?: string; also?: string };

/** Whether a row has reached its aim, its bound alone, or neither; null where there is none. */
type Mark = 'aim' | 'met' | 'short' | null;

type Row = { name: string; value: string; want: string; mark: Mark };

const rows: Row[] = [];

export const median = (values: number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/** The median of several rounds, with the smallest and the largest. */
export function spread(values: number[], digits: number): string {
  const text = (n: number): string => n.toFixed(digits);
  return `${text(median(values))} (${text(Math.min(...values))}..${text(Math.max(...values))})`;
}

/** @param value begins with the number that is compared */
function markOf(value: string, want: Bound): Mark {
  const number = Number.parseFloat(value);
  const reaches = (bound: number): boolean => ('atLeast' in want ? number >= bound : number <= bound);
  if (want.aim !== undefined && reaches(want.aim)) return 'aim';
  return reaches('atLeast' in want ? want.atLeast : want.atMost) ? 'met' : 'short';
}

function textOf(want: Bound): string {
  const unit = want.unit === undefined ? '' : ` ${want.unit}`;
  const bound = 'atLeast' in want ? `at least ${want.atLeast}${unit}` : `at most ${want.atMost}${unit}`;
  return `${bound}${want.aim === undefined ? '' : `, aim ${want.aim}${unit}`}`;
}

/**
 * Prints a row of the table and keeps it for the file.
 *
 * @param want what is said of it, or what it has to reach: then it is marked `aim`, `met` or `short`
 */
export function add(name: string, value: string, want: string | Bound = ''): void {
  const mark = typeof want === 'string' ? null : markOf(value, want);
  const text =
    typeof want === 'string' ? want : [`${mark}: ${textOf(want)}`, want.also].filter(t => t !== undefined).join('; ');
  rows.push({ name, value, want: text, mark });
  console.log(`  ${name.padEnd(70)} ${value.padStart(24)}  ${text}`);
}

/** @returns the file the table was written to */
export function writeReport(directory: string): string {
  fs.mkdirSync(directory, { recursive: true });
  const file = path.join(directory, `${new Date().toISOString().replaceAll(':', '-')}.json`);
  const table = { node: process.version, cores: os.availableParallelism(), generator, rows };
  fs.writeFileSync(file, `${JSON.stringify(table, null, 2)}\n`);
  return file;
}
