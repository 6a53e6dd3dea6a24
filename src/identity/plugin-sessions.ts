import { LIMITS } from '../base/limits.ts';
import type { Queryable } from '../db/database.ts';
import { findRow } from '../db/rows.ts';
import { makeSecret, sha256 } from './bearer-secret.ts';
import { addSession, findSessionById, type Session } from './sessions.ts';

/** Rows of `plugin_logins`: codes that bring a user's session to the origin of a plugin. */

/**
 * Creates a code with which the browser that has the state can open a session on the origin of a plugin, once, within a
 * minute.
 *
 * @param state hash of the secret the browser keeps on that origin, as hexadecimal text
 */
export async function addPluginLogin(
  db: Queryable,
  session: Session,
  pluginId: string,
  state: string,
): Promise<string> {
  const code = makeSecret();
  await db.query(
    `INSERT INTO plugin_logins (code_sha256, session_id, plugin_id, state_sha256, expires_at)
     VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5))`,
    [code.sha256, session.id, pluginId, Buffer.from(state, 'hex'), LIMITS.pluginLoginMs / 1000],
  );
  return code.text;
}

/**
 * Exchanges a code for a session that is valid only for the plugin; part of a transaction.
 *
 * @param secret the state that the browser kept on the plugin's origin
 * @returns the cookie's value; null if the code is unknown, used, expired, of another plugin or of another browser
 */
export async function usePluginLogin(
  client: Queryable,
  of: {
    code: string;
    secret: string;
    pluginId: string;
    address: string;
    userAgent: string;
    hostOnly: boolean;
    nowMs: number;
  },
): Promise<string | null> {
  const login = await findRow<{ sessionId: number }>(
    client,
    `DELETE FROM plugin_logins WHERE code_sha256 = $1 AND plugin_id = $2 AND state_sha256 = $3 AND expires_at > now()
     RETURNING session_id`,
    [sha256(of.code), of.pluginId, sha256(of.secret)],
  );
  const parent = login === undefined ? undefined : await findSessionById(client, login.sessionId, of.nowMs);
  if (parent === undefined) return null;
  const { secret } = await addSession(client, {
    kind: 'user',
    userId: parent.userId,
    withPassword: false,
    address: of.address,
    userAgent: of.userAgent,
    browser: true,
    hostOnly: of.hostOnly,
    within: { pluginId: of.pluginId, parentId: parent.id },
  });
  return secret;
}

/** Removes codes that were not used in time. */
export async function removeOldPluginLogins(db: Queryable): Promise<void> {
  await db.query('DELETE FROM plugin_logins WHERE expires_at <= now()');
}

/** Ends every login on the origin of a plugin that is under way; returns how many. */
export async function endPluginLogins(client: Queryable): Promise<number> {
  return (await client.query('DELETE FROM plugin_logins')).rowCount ?? 0;
}
