import { toCamelCase } from '../base/camel-case.ts';
import { INT8_AS_NUMBER, type Queryable } from './database.ts';

type Statement = Parameters<Queryable['query']>[0];

/** Rows come as arrays, whose members are named here. */
const AS_ARRAYS = { rowMode: 'array', types: INT8_AS_NUMBER };

/**
 * Runs a statement and reads its rows as the code uses them: `created_at` is `createdAt`, and an int8 is a number.
 * Names inside a JSON column stay as they are.
 *
 * @typeParam Row what the statement selects; nothing checks that it is true
 */
export async function findRows<Row>(db: Queryable, statement: Statement, values?: unknown[]): Promise<Row[]> {
  const query = typeof statement === 'string' ? { text: statement, values: values ?? [] } : statement;
  const { fields, rows } = await db.query<unknown[]>({ ...query, ...AS_ARRAYS });
  const names = fields.map(f => toCamelCase(f.name));
  return rows.map(row => Object.fromEntries(names.map((name, i) => [name, row[i]])) as Row);
}

/** The first row of a statement, or undefined. */
export async function findRow<Row>(db: Queryable, statement: Statement, values?: unknown[]): Promise<Row | undefined> {
  return (await findRows<Row>(db, statement, values))[0];
}

/** The row of a statement that always has one, like an insertion. */
export async function loadRow<Row>(db: Queryable, statement: Statement, values?: unknown[]): Promise<Row> {
  const row = await findRow<Row>(db, statement, values);
  if (row === undefined) throw new Error('bug: the statement returned no row');
  return row;
}
