/** Rows as a table: each column is as wide as its widest cell. */
export function table(rows: ReadonlyArray<readonly string[]>): string {
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
