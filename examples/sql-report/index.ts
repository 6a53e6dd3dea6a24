import {
  ConfigFields,
  type Context,
  Database,
  definePlugin,
  HostError,
  StringField,
  TriggerHTTP,
  Users,
} from '@plugin-host/sdk';

/** A report from a database of the university: an administrator writes the query once, staff read it as a page or a table. */
definePlugin({
  ID: 'sql-report',
  Name: 'SQL report',
  Version: '1.0.0',
  Requirements: [
    Database('Runs the query of the report; give it a role that can read and nothing else')
      .Name('report')
      .WithConfig(
        ConfigFields(
          StringField('title', 'Title of the report').Required(),
          StringField('query', 'A SELECT without a semicolon; its columns are those of the report').Required(),
        ),
      )
      .Build(),
  ],
  Triggers: [
    {
      Name: 'report',
      Type: TriggerHTTP,
      Path: '/report',
      Methods: ['GET'],
      Description: 'Shows the first rows, as JSON or, for browsers, as a page',
      Access: Users('Staff read the report').Policy('has_any_role("staff", "dean")'),
      Handler: ctx => answered(ctx, show),
    },
    {
      Name: 'table',
      Type: TriggerHTTP,
      Path: '/report.csv',
      Methods: ['GET'],
      Description: 'Gives all rows as a table for spreadsheets',
      Access: Users('Staff download the report').Policy('has_any_role("staff", "dean")'),
      Handler: ctx => answered(ctx, table),
    },
  ],
});

const SHOWN = 200;
const ROWS_MAX = 50_000;

type Report = { columns: string[]; rows: string[][]; isWhole: boolean };

/** SQLSTATE of a statement that changes something in a transaction that only reads. */
const READ_ONLY = '25006';

/** What an administrator has to change in the query. */
class Refusal extends Error {}

/** A refusal of the database names its mistake: who reads the report is no stranger. */
function answered(ctx: Context, handle: (ctx: Context) => void): void {
  try {
    handle(ctx);
  } catch (error) {
    if (error instanceof Refusal) return ctx.JSON(422, { error: error.message });
    if (!(error instanceof HostError)) throw error;
    if (error.message.startsWith(READ_ONLY))
      return ctx.JSON(422, { error: `the query must only read: ${error.message}` });
    ctx.JSON(error.code === 'unavailable' ? 503 : 500, { error: error.message });
  }
}

const textOf = (value: unknown): string =>
  value === null || value === undefined
    ? ''
    : typeof value === 'object' && !(value instanceof Uint8Array)
      ? JSON.stringify(value)
      : `${value}`;

function run(ctx: Context, rowsMax: number): Report {
  // The query reads, whatever an administrator has written. The transaction ends with the execution.
  const transaction = ctx.Database('report').Begin();
  transaction.Exec('SET TRANSACTION READ ONLY');
  const found = transaction.Query(ctx.Config('query') ?? '');
  const columns = found.columns.map(c => c.name);
  const twice = columns.find((name, k) => columns.indexOf(name) !== k);
  if (twice !== undefined)
    throw new Refusal(`two columns of the query are called ${twice}: give one another name with AS`);
  const rows: string[][] = [];
  let isWhole = true;
  for (const row of found) {
    if (rows.length === rowsMax) {
      isWhole = false;
      break;
    }
    rows.push(columns.map(name => textOf(row[name])));
  }
  found.Close();
  return { columns, rows, isWhole };
}

const HTML: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escaped = (text: string): string => text.replace(/[&<>"]/g, c => HTML[c] ?? c);

function pageOf(title: string, { columns, isWhole, rows }: Report): string {
  const row = (name: 'td' | 'th', cells: readonly string[]): string =>
    `<tr>${cells.map(c => `<${name}>${escaped(c)}</${name}>`).join('')}</tr>`;
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}main{overflow-x:auto;padding:1rem}
table{border-collapse:collapse}td,th{padding:.25rem .75rem;border-bottom:1px solid;text-align:left}</style>
<main><h1>${escaped(title)}</h1><table><thead>${row('th', columns)}</thead><tbody>${rows.map(r => row('td', r)).join('')}</tbody></table>
<p>${isWhole ? `${rows.length} rows` : `The first ${rows.length} rows`}. <a href="report.csv">All as a table</a></p></main></html>`;
}

function show(ctx: Context): void {
  const report = run(ctx, SHOWN);
  const title = ctx.Config('title') ?? '';
  if ((ctx.HTTP.Headers.accept ?? '').includes('text/html'))
    return ctx.SetHTTPResponse(200, { 'Content-Type': 'text/html; charset=utf-8' }, pageOf(title, report));
  ctx.JSON(200, { title, columns: report.columns, rows: report.rows, whole: report.isWhole });
}

/** RFC 4180; a cell that a spreadsheet would run as a formula gets a quotation mark in front. */
function cell(text: string): string {
  const isNumber = /^-?\d+(\.\d+)?$/.test(text);
  const plain = !isNumber && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

function table(ctx: Context): void {
  const { columns, isWhole, rows } = run(ctx, ROWS_MAX);
  if (!isWhole) return ctx.JSON(413, { error: `the report has more than ${ROWS_MAX} rows: narrow its query` });
  const text = [columns, ...rows].map(cells => `${cells.map(cell).join(',')}\r\n`).join('');
  ctx.SetHTTPResponse(
    200,
    { 'Content-Type': 'text/csv; charset=utf-8', 'Content-Disposition': 'attachment; filename="report.csv"' },
    // The mark tells spreadsheets that it is UTF-8.
    `\uFEFF${text}`,
  );
}
