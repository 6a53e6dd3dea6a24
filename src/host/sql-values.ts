import { Buffer } from 'node:buffer';
import { parse as parseArray } from 'postgres-array';
import { LIMITS } from '../base/limits.ts';
import { columnTypeOf } from '../db/database.ts';
import type { SqlPage, SqlRow } from '../db/page-query.ts';

/** Converts values between plugins and databases (docs/abi.md `sql_query`): lossless JSON. */

/** A number with the digits of the JSON text; a JavaScript number would lose digits beyond 2^53. */
class Digits {
  readonly source: string;
  constructor(source: string) {
    this.source = source;
  }
}

const isDigits = (value: unknown): value is Digits => value instanceof Digits;

/** Writes a parsed value as JSON with its original digits. */
function write(value: unknown): string {
  if (isDigits(value)) return value.source;
  if (Array.isArray(value)) return `[${value.map(write).join(',')}]`;
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([key, v]) => `${JSON.stringify(key)}:${write(v)}`)
      .join(',')}}`;
  return JSON.stringify(value);
}

/** An argument as it is sent to the database: text, bytes, null. */
export type SqlArgument = string | Buffer | null;

/** One element of a list as PostgreSQL reads it. */
function elementOf(value: SqlArgument, isList: boolean): string {
  if (value === null) return 'NULL';
  if (isList && typeof value === 'string') return value;
  const text = typeof value === 'string' ? value : `\\x${value.toString('hex')}`;
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

const isListOf = (value: unknown): boolean => typeof value === 'object' && value !== null && 'array' in value;

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function argumentOf(value: unknown, at: string, depth: number): SqlArgument {
  if (value === null) return null;
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'string') {
    if (value.includes('\0'))
      throw new Error(`${at} contains a NUL character, which PostgreSQL does not allow in text`);
    return value;
  }
  if (isDigits(value)) return value.source;
  if (typeof value === 'object' && !Array.isArray(value)) {
    const entries = Object.entries(value);
    const [key, inner] = entries[0] ?? [];
    if (entries.length === 1 && key === 'base64' && typeof inner === 'string' && BASE64.test(inner))
      return Buffer.from(inner, 'base64');
    if (entries.length === 1 && key === 'json') return write(inner);
    if (entries.length === 1 && key === 'array' && Array.isArray(inner) && depth < 6)
      return `{${inner.map((v, k) => elementOf(argumentOf(v, `${at}/array/${k}`, depth + 1), isListOf(v))).join(',')}}`;
  }
  throw new Error(
    `${at} must be null, true, false, a number, a string, {"base64": "..."}, {"json": value} or {"array": [values]}`,
  );
}

const [COMMA, BRACKET, BRACE, QUOTE, BACKSLASH] = [0x2c, 0x5b, 0x7b, 0x22, 0x5c];

/** Counts values outside of strings. Cheap compared with parsing, which would block the main thread for long. */
function assertFew(json: string): void {
  let values = 0;
  let inString = false;
  for (let k = 0; k < json.length; k++) {
    const c = json.charCodeAt(k);
    if (c === QUOTE) inString = !inString;
    else if (inString) {
      if (c === BACKSLASH) k++;
    } else if ((c === COMMA || c === BRACKET || c === BRACE) && ++values > LIMITS.sqlValuesMax)
      throw new Error(`the arguments contain more than ${LIMITS.sqlValuesMax} values`);
  }
}

/**
 * Parses the arguments of a statement.
 *
 * @param json a JSON array
 * @throws Error that says which one is wrong and what would be right
 */
export function parseArguments(json: string): SqlArgument[] {
  assertFew(json);
  let value: unknown;
  try {
    value =
      json === ''
        ? []
        : JSON.parse(json, (_, v: unknown, context?: { source?: string }) =>
            typeof v === 'number' ? new Digits(context?.source ?? String(v)) : v,
          );
  } catch (error) {
    throw new Error(`the arguments are not JSON: ${error instanceof Error ? error.message : ''}`);
  }
  if (!Array.isArray(value)) throw new Error('the arguments must be a JSON array, one element for each $n');
  if (value.length > LIMITS.sqlArgumentsMax)
    throw new Error(`the statement has ${value.length} arguments; at most ${LIMITS.sqlArgumentsMax} are allowed`);
  return value.map((v, k) => argumentOf(v, `/${k}`, 0));
}

const [BOOL, BYTEA, INT8, INT2, INT4, OID, JSON_TEXT, FLOAT4, FLOAT8, TIMESTAMP, TIMESTAMPTZ, JSONB] = [
  16, 17, 20, 21, 23, 26, 114, 700, 701, 1114, 1184, 3802,
];
const TIME = /^(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)(?:([+-]\d\d)(?::?(\d\d))?)?$/;

/** Converts `2026-11-22 10:00:00.123456+00` to RFC 3339; other styles, eras and `infinity` stay unchanged. */
function timeOf(text: string): string {
  const [, day, time, hours, minutes] = TIME.exec(text) ?? [];
  if (day === undefined) return text;
  const zone =
    hours === undefined ? '' : hours === '+00' && (minutes ?? '00') === '00' ? 'Z' : `${hours}:${minutes ?? '00'}`;
  return `${day}T${time}${zone}`;
}

/** One value as JSON. */
function jsonOf(oid: number, text: string): string {
  switch (oid) {
    case BOOL:
      return text === 't' ? 'true' : 'false';
    case INT2:
    case INT4:
    case INT8:
    case OID:
      return text;
    case FLOAT4:
    case FLOAT8:
      return /^-?\d/.test(text) ? text : JSON.stringify(text);
    case JSON_TEXT:
    case JSONB:
      return text;
    case BYTEA:
      return JSON.stringify(text.startsWith('\\x') ? Buffer.from(text.slice(2), 'hex').toString('base64') : text);
    case TIMESTAMP:
    case TIMESTAMPTZ:
      return JSON.stringify(timeOf(text));
    default:
      return JSON.stringify(text);
  }
}

/** Nested lists from `parseArray` as JSON; their leaves are JSON already. */
const listOf = (value: unknown): string =>
  Array.isArray(value) ? `[${value.map(listOf).join(',')}]` : value === null ? 'null' : String(value);

function cellOf(oid: number, elementOid: number | null, text: string | null): string {
  if (text === null) return 'null';
  // A list with bounds other than the default begins with its bounds.
  if (elementOid === null || !text.startsWith('{')) return jsonOf(elementOid === null ? oid : 0, text);
  return listOf(parseArray(text, element => jsonOf(elementOid, element)));
}

/** Encodes rows as JSON for the plugin: an array of arrays, in the order of the columns. */
export function encodeRows(columns: ReadonlyArray<{ oid: number }>, rows: readonly SqlRow[]): string {
  const elements = columns.map(c => columnTypeOf(c.oid).elementOid);
  return `[${rows
    .map(row => `[${row.map((text, k) => cellOf(columns[k]?.oid ?? 0, elements[k] ?? null, text)).join(',')}]`)
    .join(',')}]`;
}

export const encodeColumns = (columns: SqlPage['columns']): string =>
  JSON.stringify(columns.map(c => ({ name: c.name, type: columnTypeOf(c.oid).name })));
