import { answered, api, type Schemas } from '../api/client.ts';

export type AuditFilter = {
  action?: string;
  actor?: number;
  object_type?: string;
  object_id?: string;
  since?: string;
};

const PAGE = 200;
/** What a spreadsheet still opens well; a log that is longer is filtered first. */
export const CSV_ROWS_MAX = 20_000;
const HEAD = [
  'id',
  'at',
  'actor',
  'actor_kind',
  'user_id',
  'action',
  'object_type',
  'object_id',
  'before',
  'after',
  'request_id',
  'address',
];

/**
 * Reads all entries of a filter, page by page.
 *
 * @param progress called with how many there are so far
 * @returns the text of the file, and whether entries were left out
 */
export async function auditCsv(
  filter: AuditFilter,
  progress: (count: number) => void,
  signal: AbortSignal,
): Promise<{ text: string; isCut: boolean }> {
  const rows: Array<Schemas['AuditEntry']> = [];
  let cursor: string | undefined;
  do {
    const query = { ...filter, limit: PAGE, cursor };
    const page = answered(await api.GET('/api/admin/audit', { params: { query }, signal }));
    rows.push(...page.items);
    progress(rows.length);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && rows.length < CSV_ROWS_MAX);
  // The mark at the beginning tells spreadsheets that it is UTF-8.
  const text = `\ufeff${[HEAD, ...rows.map(lineOf)].map(line => line.map(cell).join(',')).join('\r\n')}\r\n`;
  return { text, isCut: cursor !== undefined };
}

const lineOf = (e: Schemas['AuditEntry']): unknown[] => [
  e.id,
  e.at,
  e.actor.name,
  e.actor.kind,
  e.actor.global_user_id,
  e.action,
  e.object_type,
  e.object_id,
  e.before === null ? '' : JSON.stringify(e.before),
  e.after === null ? '' : JSON.stringify(e.after),
  e.request_id,
  e.address,
];

/** RFC 4180. What a spreadsheet would take for a formula is made text. */
export function cell(value: unknown): string {
  const plain = value === null || value === undefined ? '' : String(value);
  const text = /^[=+\-@\t\r]/.test(plain) ? `'${plain}` : plain;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Hands a file that was built here to the browser. */
export function saveFile(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
