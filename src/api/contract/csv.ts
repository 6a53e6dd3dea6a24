import { Readable } from 'node:stream';
import { ServiceError } from '../../base/errors.ts';
import type { EndlessStream } from '../../http/message.ts';
import type { RawReply } from './contract.ts';

/** Lists as tables for spreadsheets and scripts (docs/api.md "Tables"). */

type Cell = string | number | boolean | Date | null | undefined;
/** A column: its name, and what stands in it. */
export type CsvColumns<Row> = ReadonlyArray<readonly [name: string, value: (row: Row) => Cell]>;

/** Rows that are read at a time. */
const PAGE = 1000;

/** The answer of an endpoint that gives a table. */
export const csvTable: RawReply = { media: 'text/csv', description: 'A table; its first line names the columns' };

/** RFC 4180. A cell that a spreadsheet would run as a formula gets a quotation mark in front, and is text. */
function cellText(value: Cell): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string') return value instanceof Date ? value.toISOString() : String(value);
  const plain = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

const line = (cells: readonly Cell[]): string => `${cells.map(cellText).join(',')}\r\n`;

async function* chunksOf<Row>(
  columns: CsvColumns<Row>,
  load: (last: Row | undefined, limit: number) => Promise<readonly Row[]>,
  isStillAllowed: () => Promise<boolean>,
): AsyncGenerator<Buffer> {
  // The mark tells spreadsheets that the text is UTF-8.
  yield Buffer.from(`\uFEFF${line(columns.map(([name]) => name))}`);
  for (let last: Row | undefined; ; ) {
    if (last !== undefined && !(await isStillAllowed()))
      throw new ServiceError('unauthorized', 'the caller may not read on');
    const rows = await load(last, PAGE);
    last = rows.at(-1);
    if (rows.length > 0) yield Buffer.from(rows.map(row => line(columns.map(([, value]) => value(row)))).join(''));
    if (rows.length < PAGE) return;
  }
}

/**
 * The answer that sends a list as a table, page by page, as fast as the client reads it.
 *
 * @param name of the file, for browsers, without its ending; a day is added
 * @param load at most `limit` rows behind `last`, or the first ones
 * @param isStillAllowed asked before each further page; the answer is cut off when it says no
 */
export function csvReply<Row>(
  name: string,
  columns: CsvColumns<Row>,
  load: (last: Row | undefined, limit: number) => Promise<readonly Row[]>,
  isStillAllowed: () => Promise<boolean>,
): { status: 200; headers: Array<[string, string]>; body: EndlessStream } {
  const day = new Date().toISOString().slice(0, 10);
  return {
    status: 200,
    headers: [
      ['Content-Type', 'text/csv; charset=utf-8'],
      ['Content-Disposition', `attachment; filename="${name}-${day}.csv"`],
      ['Cache-Control', 'no-store'],
    ],
    body: {
      endless: true,
      open: () => Promise.resolve(Readable.from(chunksOf(columns, load, isStillAllowed), { highWaterMark: 1 })),
    },
  };
}
