import { ServiceError } from '../base/errors.ts';
import type { Queryable } from './database.ts';
import { findRow } from './rows.ts';

/**
 * Rows that are held until the transaction ends, so that what is given to a user or a plugin goes with it: without that
 * an erasure or uninstallation under way leaves it to the next of the same id.
 */

export const unknownUser = (id: number): ServiceError => new ServiceError('not_found', `there is no user ${id}`);

/**
 * @returns the external id that the user has now
 * @throws ServiceError `not_found` when the user is gone
 */
export async function holdUser(client: Queryable, id: number): Promise<string | null> {
  const row = await findRow<{ externalId: string | null }>(
    client,
    'SELECT external_id FROM global_users WHERE id = $1 FOR UPDATE',
    [id],
  );
  if (row === undefined) throw unknownUser(id);
  return row.externalId;
}

export const unknownPlugin = (id: string): ServiceError => new ServiceError('not_found', `there is no plugin "${id}"`);

/** @throws ServiceError `not_found` when the plugin is gone */
export async function holdPlugin(client: Queryable, id: string): Promise<void> {
  const row = await findRow(client, 'SELECT 1 AS one FROM plugins WHERE id = $1 FOR UPDATE', [id]);
  if (row === undefined) throw unknownPlugin(id);
}
