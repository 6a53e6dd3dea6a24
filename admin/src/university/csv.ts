/** Characters that may stand between cells; the first line of a file tells which one does. */
const DELIMITERS = [',', ';', '\t'] as const;
export type Delimiter = (typeof DELIMITERS)[number];

/** A row with the line of the file it begins at, counted from 1. */
export type CsvRow = { line: number; cells: string[] };
export type Csv = { delimiter: Delimiter; rows: CsvRow[]; isCutOff: boolean };

/** The character that the first line has most often outside of quotes. */
function delimiterOf(text: string): Delimiter {
  const counts = new Map<string, number>();
  let isQuoted = false;
  for (const c of text) {
    if (c === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (c === '\n' || c === '\r')) break;
    else if (!isQuoted) counts.set(c, (counts.get(c) ?? 0) + 1);
  }
  const of = (d: Delimiter): number => counts.get(d) ?? 0;
  return DELIMITERS.reduce((best, d) => (of(d) > of(best) ? d : best));
}

/**
 * Reads CSV as RFC 4180 has it: cells in quotes may hold delimiters, line breaks and doubled quotes. Lines without any text are left out.
 *
 * @returns `isCutOff` when the text ends within quotes
 */
export function parseCsv(given: string): Csv {
  const text = given.replace(/^\uFEFF/, '');
  const delimiter = delimiterOf(text);
  const rows: CsvRow[] = [];
  let row: CsvRow = { line: 1, cells: [] };
  let cell = '';
  let line = 1;
  let isQuoted = false;
  const endCell = (): void => {
    row.cells.push(cell);
    cell = '';
  };
  const endRow = (): void => {
    endCell();
    if (row.cells.some(c => c.trim() !== '')) rows.push(row);
  };
  for (let k = 0; k < text.length; k++) {
    const c = text[k] ?? '';
    const isBreak = c === '\n' || (c === '\r' && text[k + 1] !== '\n');
    if (isBreak) line++;
    if (isQuoted) {
      if (c !== '"') cell += c;
      else if (text[k + 1] === '"') cell += text[++k];
      else isQuoted = false;
    } else if (c === '"' && cell === '') isQuoted = true;
    else if (c === delimiter) endCell();
    else if (isBreak) {
      endRow();
      row = { line, cells: [] };
    } else if (c !== '\r') cell += c;
  }
  if (cell !== '' || row.cells.length > 0) endRow();
  return { delimiter, rows, isCutOff: isQuoted };
}

/**
 * Writes CSV; cells that need quotes get them. A cell that begins like a formula stays as it is: these are the
 * administrator's own records, and the file is read again.
 */
export function formatCsv(rows: ReadonlyArray<readonly string[]>, delimiter: Delimiter): string {
  const needsQuotes = (cell: string): boolean => cell.includes(delimiter) || /["\r\n]|^\s|\s$/.test(cell);
  const quoted = (cell: string): string => (needsQuotes(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  return rows.map(cells => `${cells.map(quoted).join(delimiter)}\r\n`).join('');
}
