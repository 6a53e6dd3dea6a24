import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { generator } from './load.ts';

type Row = { name: string; value: string; want: string };

const rows: Row[] = [];

export const median = (values: number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/** The median of several rounds, with the smallest and the largest. */
export function spread(values: number[], digits: number): string {
  const text = (n: number): string => n.toFixed(digits);
  return `${text(median(values))} (${text(Math.min(...values))}..${text(Math.max(...values))})`;
}

/** Prints a row of the table and keeps it for the file. */
export function add(name: string, value: string, want = ''): void {
  rows.push({ name, value, want });
  console.log(`  ${name.padEnd(70)} ${value.padStart(24)}  ${want}`);
}

/** @returns the file the table was written to */
export function writeReport(directory: string): string {
  fs.mkdirSync(directory, { recursive: true });
  const file = path.join(directory, `${new Date().toISOString().replaceAll(':', '-')}.json`);
  const table = { node: process.version, cores: os.availableParallelism(), generator, rows };
  fs.writeFileSync(file, `${JSON.stringify(table, null, 2)}\n`);
  return file;
}
