import type { Queryable } from './database.ts';

/**
 * Settings with a dot in their name (`app.user_id`) come into being when a session sets them, and PostgreSQL forgets their value at
 * `DISCARD ALL`, but not their name: `current_setting('app.user_id')` is then empty instead of an error. No catalog lists them. So a
 * session that may have set one is recognised by what ran in it: the text of its statements, and the code that is stored in its database.
 */

// The text is a plugin's, and read on the main thread: every pattern here takes time in proportion to its length.
const COMMENT_MARK = /\/\*|\*\/|--[^\n]*/g;
const IDENTIFIER = String.raw`(?:"[^"]*"|[\w$\x80-\uffff]+)`;
/** `SET app.name`, `SET LOCAL "app".name`; not `SET column = other.column`. */
const SETS_NAME = new RegExp(String.raw`\bset\s+(?:(?:session|local)\s+)?${IDENTIFIER}\s*\.`, 'i');
/** What is put together while it runs may be anything. */
const SETS_COMPUTED = /\bset\s+(?:(?:session|local)\s+)?(?:%|'|\|\|)/i;

/** Comments of PostgreSQL contain each other. */
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

/** What the code stored in a database may set. */
export type StoredNames = {
  /** Names that stand in it. */
  names: readonly string[];
  /** Whether it may set others, which cannot be read from it. */
  isOpen: boolean;
};

/** Functions alone hold text; expressions of views, defaults, policies and SQL bodies are kept parsed, with the numbers of functions. */
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

/** Names in quotes or behind SET; names of tables are among them, which does no harm. */
const DOTTED = /[a-z_][\w$]*(?:\.[a-z_][\w$]*)+/gi;

/**
 * Reads what stored code may set.
 *
 * @param session a new one, in which nothing has been set: names it knows are the server's own
 */
export async function readStoredNames(session: Queryable): Promise<StoredNames> {
  const { rows } = await session.query<StoredSql>(STORED);
  const names = new Set<string>();
  let isOpen = false;
  for (const { config, sets, source } of rows) {
    if (sets === true) isOpen = true;
    for (const [name] of (config ?? '').matchAll(DOTTED)) names.add(name.toLowerCase());
    if (source === null || !maySetName(source)) continue;
    // A call whose first argument is no text, or a text that is put together.
    if (/set_config\s*\((?!\s*'[^']*'\s*,)/i.test(source) || /\bexecute\b/i.test(source)) isOpen = true;
    for (const [name] of source.matchAll(DOTTED)) names.add(name.toLowerCase());
  }
  const known = await listKnown(session, [...names]);
  return { names: [...names].filter(name => !known.includes(name)), isOpen };
}

/** Those of the names that a session knows, whatever their values. */
export async function listKnown(session: Queryable, names: readonly string[]): Promise<string[]> {
  if (names.length === 0) return [];
  const { rows } = await session.query<{ name: string }>(
    'SELECT name FROM unnest($1::text[]) AS name WHERE current_setting(name, true) IS NOT NULL',
    [names],
  );
  return rows.map(r => r.name);
}
