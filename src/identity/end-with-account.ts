import type { Queryable } from '../db/database.ts';
import { unlinkAll } from './messenger-accounts.ts';
import { revokeAllSessions } from './sessions.ts';
import { revokeAllUserTokens } from './user-tokens.ts';

/**
 * Ends what a user has opened whose account at the identity provider is another person's now: sessions, tokens and links
 * to messengers. Part of a transaction.
 */
export async function endWithAccount(client: Queryable, userId: number): Promise<void> {
  await revokeAllSessions(client, userId);
  await revokeAllUserTokens(client, userId);
  await unlinkAll(client, userId);
}
