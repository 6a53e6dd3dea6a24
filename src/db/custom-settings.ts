import type { Queryable } from './database.ts';

/**
 * A session creates a setting with a dot in its name (`app.user_id`) by setting it. `DISCARD ALL` removes the value but
 * not the name: afterwards `current_setting('app.user_id')` returns an empty text instead of an error. No catalog lists
 * such names. So the service looks at what ran in a session, the text of its statements and the code stored in its
 * database, to decide whether it may have set one.
 */

// A plugin chooses the text and the main thread scans it, so every pattern here takes time linear in its length.
const COMMENT_MARK = /\/\*|\*\/|--[^\n]*/g;
const IDENTIFIER = String.raw`(?:"[^"]*"|[\w$\x80-\uffff]+)`;
/** `SET app.name`, `SET LOCAL "app".name`; not `SET column = other.column`. */
const SETS_NAME = new RegExp(String.raw`\bset\s+(?:(?:session|local)\s+)?${IDENTIFIER}\s*\.`, 'i');
/** SQL that is built at run time may set any name. */
const SETS_COMPUTED = /\bset\s+(?:(?:session|local)\s+)?(?:%|'|\|\|)/i;

/** Comments of PostgreSQL can be nested. */
function withoutComments(text: string): string {
  if (!text.includes('/*') && !text.includes('--')) return text;
  let [out, from, depth] = ['', 0, 0];
  for (const { 0: mark, index } of text.matchAll(COMMENT_MARK)) {
    if (depth === 0 && mark !== '*/') out += `${text.slice(from, index)} `;
    if (mark === '/*') depth++;
    else if (mark === '*/' && depth > 0) depth--;
    else if (mark === '*/') continue;
    if (depth === 0) from = index + mark.length;
  }
  return depth === 0 ? out + text.slice(from) : out;
}

/** Whether a statement, or a piece of stored code, may set a setting with a dot in its name. */
export function maySetName(text: string): boolean {
  if (!/set|execute|u&"/i.test(text)) return false;
  const plain = withoutComments(text);
  return (plain === text ? [text] : [text, plain]).some(
    t =>
      /set_config|u&"/i.test(t) ||
      SETS_NAME.test(t) ||
      (/\bexecute\b/i.test(t) && (SETS_COMPUTED.test(t) || /^\s*do\b/i.test(t))),
  );
}

/** The settings that code stored in a database may set. */
export type StoredNames = {
  /** Names that its text contains. */
  names: readonly string[];
  /** Whether it may set names that its text does not contain. */
  isOpen: boolean;
};

/**
 * Only functions store text. Views, defaults, policies and SQL bodies are stored parsed, with the OIDs of functions.
 */
const STORED = `
  WITH code AS (
    SELECT p.prosrc AS source, array_to_string(p.proconfig, ' ') AS config, to_jsonb(p) ->> 'prosqlbody' AS parsed
      FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
     WHERE p.oid >= 16384 AND l.lanname NOT IN ('c', 'internal')
    UNION ALL SELECT NULL, NULL, ev_action::text FROM pg_catalog.pg_rewrite WHERE oid >= 16384
    UNION ALL SELECT NULL, NULL, adbin::text FROM pg_catalog.pg_attrdef
    UNION ALL SELECT NULL, NULL, concat(polqual::text, polwithcheck::text) FROM pg_catalog.pg_policy)
  SELECT source, config, parsed LIKE '%:funcid ' || 'pg_catalog.set_config(text,text,boolean)'::regprocedure::oid || ' %' AS sets
    FROM code
   WHERE source ~* 'set_config|\\mset\\s' OR config ~ '\\.[^ ]*='
      OR parsed LIKE '%:funcid ' || 'pg_catalog.set_config(text,text,boolean)'::regprocedure::oid || ' %'`;

type StoredSql = { source: string | null; config: string | null; sets: boolean | null };

/** Names in quotes or after SET. Names of tables are among them, which does no harm. */
const DOTTED = /[a-z_][\w$]*(?:\.[a-z_][\w$]*)+/gi;

/**
 * Reads which settings the stored code may set.
 *
 * @param session a new one, in which nothing was set: the names it knows are the server's own
 */
export async function readStoredNames(session: Queryable): Promise<StoredNames> {
  const { rows } = await session.query<StoredSql>(STORED);
  const names = new Set<string>();
  let isOpen = false;
  for (const { config, sets, source } of rows) {
    if (sets === true) isOpen = true;
    for (const [name] of (config ?? '').matchAll(DOTTED)) names.add(name.toLowerCase());
    if (source === null || !maySetName(source)) continue;
    // The first argument of the call is not a literal text, so the name is not known.
    if (/set_config\s*\((?!\s*'[^']*'\s*,)/i.test(source) || /\bexecute\b/i.test(source)) isOpen = true;
    for (const [name] of source.matchAll(DOTTED)) names.add(name.toLowerCase());
  }
  const known = await listKnown(session, [...names]);
  return { names: [...names].filter(name => !known.includes(name)), isOpen };
}

/** The given names that a session knows, whatever their values. */
export async function listKnown(session: Queryable, names: readonly string[]): Promise<string[]> {
  if (names.length === 0) return [];
  const { rows } = await session.query<{ name: string }>(
    'SELECT name FROM unnest($1::text[]) AS name WHERE current_setting(name, true) IS NOT NULL',
    [names],
  );
  return rows.map(r => r.name);
}
