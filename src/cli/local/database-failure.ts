import { messageOf, OperatorError } from '../../base/errors.ts';
import { isUnavailable } from '../../db/database.ts';

/** invalid_authorization_specification, invalid_password, invalid_catalog_name (appendix A of PostgreSQL's manual). */
const REFUSED = new Set(['28000', '28P01', '3D000']);

/** A database that cannot be reached, or refuses the connection, in words; any other error as it is. */
export function databaseFailure(error: unknown): unknown {
  if (error instanceof OperatorError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (REFUSED.has(code))
    return new OperatorError(
      `the database refuses the connection: ${messageOf(error)}; correct role, password or name in database.url (BOT_DATABASE_URL)`,
      { cause: error },
    );
  if (!isUnavailable(error)) return error;
  return new OperatorError(
    `the database does not answer: ${messageOf(error)}; start it or correct database.url (BOT_DATABASE_URL)`,
    { cause: error },
  );
}
