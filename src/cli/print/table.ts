/** A text of others in one line: with a line break in it, it could look like another row. */
export const oneLine = (text: string): string => text.replace(/[\n\v\f\r\u0085\u2028\u2029]+/g, ' ');

/** Rows as a table: each column is as wide as its widest cell. */
export function table(given: ReadonlyArray<readonly string[]>): string {
  const rows = given.map(r => r.map(oneLine));
  const widths = rows[0]?.map((_, k) => Math.max(...rows.map(r => (r[k] ?? '').length))) ?? [];
  return rows
    .map(r =>
      r
        .map((cell, k) => cell.padEnd(widths[k] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
