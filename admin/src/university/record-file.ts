import type { components } from '../../../sdk/client/api.d.ts';
import { parseExactJson } from '../../../src/base/exact-json.ts';
import { type Csv, type Delimiter, formatCsv, parseCsv } from './csv.ts';

type Schemas = components['schemas'];
type Field = Schemas['UniversityType']['fields'][number];
type RecordError = Schemas['RecordError'];

/** Member and column that says what was wrong, in files this page writes. It is left out when they are read again. */
export const ERROR_COLUMN = '_error';

/** The records of a file, and how it had them. */
export type RecordFile = { records: unknown[]; columns: string[] } & (
  | { format: 'json' }
  /** `headings`: the columns as the file calls them. */
  | { format: 'csv'; delimiter: Delimiter; rows: Csv['rows']; headings: string[] }
);

/** The field of each column that is not named like it; null: the column is left out. */
export type Columns = Readonly<Record<string, string | null>>;

/** Why a text holds no records. */
export type FileFault =
  | { code: 'empty' | 'no_list' | 'no_records' | 'workbook' | 'not_text' | 'unreadable' }
  | { code: 'cut_off'; line: number }
  | { code: 'json'; message: string }
  | { code: 'column_twice'; column: string }
  | { code: 'field_twice'; field: string }
  | { code: 'too_many_cells'; line: number; cells: number; columns: number };

export class FileProblem extends Error {
  override readonly name = 'FileProblem';
  readonly fault: FileFault;

  constructor(fault: FileFault) {
    super(fault.code);
    this.fault = fault;
  }
}

/** Not a number either, which is an object without a prototype where its digits are kept. */
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.getPrototypeOf(value) !== null;

/** Workbooks of spreadsheets are ZIP archives. */
const ZIP = [0x50, 0x4b, 0x03, 0x04] as const;

/**
 * Text of a dropped file.
 *
 * @throws FileProblem for a workbook, and for a file that the browser may not read any more
 */
export async function readFile(dropped: File): Promise<ReturnType<typeof decodeFile>> {
  const bytes = await dropped.arrayBuffer().catch(() => {
    throw new FileProblem({ code: 'unreadable' });
  });
  const start = new Uint8Array(bytes, 0, Math.min(bytes.byteLength, ZIP.length));
  if (ZIP.every((byte, k) => start[k] === byte)) throw new FileProblem({ code: 'workbook' });
  return decodeFile(bytes);
}

export type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be' | 'windows-1251';

/** Control characters that no list holds, but a file of another kind does. */
const NO_TEXT = /[\x00-\x08\x0e-\x1f]/;

/** What a file is in: UTF-16 says so by its first two bytes, as spreadsheets write "Unicode text". */
function encodingOf(bytes: ArrayBuffer): Encoding {
  const [first, second] = new Uint8Array(bytes, 0, Math.min(2, bytes.byteLength));
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return 'utf-8';
  } catch {
    return 'windows-1251';
  }
}

/**
 * Text of a file: UTF-8, UTF-16, or else the code page that spreadsheets of Windows write Cyrillic in.
 *
 * @throws FileProblem `not_text`
 */
export function decodeFile(bytes: ArrayBuffer): { text: string; encoding: Encoding } {
  const encoding = encodingOf(bytes);
  const text = new TextDecoder(encoding).decode(bytes);
  if (NO_TEXT.test(text)) throw new FileProblem({ code: 'not_text' });
  return { text, encoding };
}

/**
 * Reads the records of JSON or CSV.
 *
 * @param columns of CSV; JSON has members, which are called as the fields are
 * @throws FileProblem
 */
export function readRecords(text: string, fields: readonly Field[], columns: Columns = {}): RecordFile {
  const start = text.replace(/^\uFEFF/, '').trimStart();
  if (start === '') throw new FileProblem({ code: 'empty' });
  const file = start.startsWith('[') || start.startsWith('{') ? readJson(start) : readCsv(text, fields, columns);
  if (file.records.length === 0) throw new FileProblem({ code: 'no_records' });
  return file;
}

/** A number with all its digits, in browsers that keep them (since 2025). */
function numberOf(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch {
    // Zeros in front are no JSON.
    return Number(text);
  }
}

/** A list, or an object with a list `items`, as sources answer. */
function readJson(text: string): RecordFile {
  let value: unknown;
  try {
    value = parseExactJson(text);
  } catch (error) {
    throw new FileProblem({ code: 'json', message: error instanceof Error ? error.message : String(error) });
  }
  const list = isObject(value) ? value.items : value;
  if (!Array.isArray(list)) throw new FileProblem({ code: 'no_list' });
  const records = list.map((record: unknown) => {
    if (!isObject(record)) return record;
    const { [ERROR_COLUMN]: _, ...rest } = record;
    return rest;
  });
  return { format: 'json', records, columns: [...new Set(records.filter(isObject).flatMap(r => Object.keys(r)))] };
}

function readCsv(text: string, fields: readonly Field[], columns: Columns): RecordFile {
  const { delimiter, isCutOff, rows } = parseCsv(text);
  if (isCutOff) throw new FileProblem({ code: 'cut_off', line: rows.at(-1)?.line ?? 1 });
  const [head, ...body] = rows;
  const headings = (head?.cells ?? []).map(c => c.trim());
  const isTwice = (n: string, k: number, all: readonly string[]): boolean => n !== '' && all.indexOf(n) !== k;
  const twice = headings.find(isTwice);
  if (twice !== undefined) throw new FileProblem({ code: 'column_twice', column: twice });
  // A column that is left out has no name.
  const names = headings.map(n => (Object.hasOwn(columns, n) ? (columns[n] ?? '') : n));
  const same = names.find(isTwice);
  if (same !== undefined) throw new FileProblem({ code: 'field_twice', field: same });
  const kinds = new Map(fields.map(f => [f.name, f.kind]));
  const records = body.map(({ cells, line }) => {
    if (cells.slice(names.length).some(c => c.trim() !== ''))
      throw new FileProblem({ code: 'too_many_cells', line, cells: cells.length, columns: names.length });
    const record: Record<string, unknown> = {};
    names.forEach((name, k) => {
      const cell = (cells[k] ?? '').trim();
      if (name !== '' && name !== ERROR_COLUMN && cell !== '') put(record, name, cell, kinds);
    });
    return record;
  });
  const found = names.filter(n => n !== '' && n !== ERROR_COLUMN).map(n => n.split('.')[0] ?? n);
  return { format: 'csv', delimiter, rows, headings, records, columns: [...new Set(found)] };
}

/** Puts a cell where its column says: `name_i18n.ru` is a member of `name_i18n`. */
function put(record: Record<string, unknown>, name: string, cell: string, kinds: ReadonlyMap<string, Field['kind']>) {
  const [outer = '', ...rest] = name.split('.');
  if (rest.length === 0 || kinds.get(outer) !== 'object') {
    record[name] = cellValue(cell, kinds.get(name));
    return;
  }
  const member = record[outer];
  record[outer] = { ...(isObject(member) ? member : {}), [rest.join('.')]: cell };
}

/** A cell as its field wants it. What cannot be read so stays text, and the service says what would be right. */
function cellValue(cell: string, kind: Field['kind'] | undefined): unknown {
  if (kind === 'boolean')
    return /^(true|yes|1|да)$/i.test(cell) ? true : /^(false|no|0|нет)$/i.test(cell) ? false : cell;
  if (kind === 'number' || kind === 'whole_number')
    return /^-?\d+([.,]\d+)?$/.test(cell) ? numberOf(cell.replace(',', '.')) : cell;
  if (kind === 'date') return cell.replace(/^(\d\d)\.(\d\d)\.(\d{4})$/, '$3-$2-$1');
  if (kind !== 'object' && kind !== 'list') return cell;
  try {
    return parseExactJson(cell);
  } catch {
    return cell;
  }
}

/** The records that were not taken, as the file had them, each with what is wrong with it. */
export function failedRecords(file: RecordFile, errors: readonly RecordError[]): string {
  const wrong = new Map<number, string>();
  for (const e of [...errors].sort((a, b) => a.index - b.index)) {
    const before = wrong.get(e.index);
    wrong.set(e.index, before === undefined ? e.message : `${before}; ${e.message}`);
  }
  if (file.format === 'csv') {
    const [head, ...body] = file.rows;
    const at = head?.cells.findIndex(c => c.trim() === ERROR_COLUMN) ?? -1;
    const without = (cells: readonly string[]): string[] => cells.filter((_, k) => k !== at);
    const width = without(head?.cells ?? []).length;
    const filled = (cells: string[]): string[] => Array.from({ length: width }, (_, k) => cells[k] ?? '');
    const rows = [...wrong].map(([k, text]) => [...filled(without(body[k]?.cells ?? [])), text]);
    return formatCsv([[...without(head?.cells ?? []), ERROR_COLUMN], ...rows], file.delimiter);
  }
  const records = [...wrong].map(([k, text]) => {
    const record = file.records[k];
    return isObject(record) ? { ...record, [ERROR_COLUMN]: text } : { record, [ERROR_COLUMN]: text };
  });
  return `${JSON.stringify(records, null, 2)}\n`;
}

/** An empty table with a column for each field, to be filled in a spreadsheet. */
export const template = (fields: readonly Field[]): string =>
  formatCsv([fields.filter(f => f.name !== 'metadata').map(f => f.name)], ',');
