import { randomBytes } from 'node:crypto';
import { type Actor, type AuditState, appendAudit } from '../audit/audit-log.ts';
import type { Queryable } from '../db/database.ts';
import { findRow, findRows, loadRow } from '../db/rows.ts';
import type { SecretBox } from '../secrets/secret-box.ts';

/** Subscribers to events: webhooks an administrator has registered (docs/events.md). */
export type Subscription = {
  id: number;
  name: string;
  url: string;
  /** Empty: all. */
  types: readonly string[];
  plugins: readonly string[];
  enabled: boolean;
  /** Why the host itself has switched it off; empty otherwise. */
  disabledWhy: string;
  createdAt: Date;
  updatedAt: Date;
};

export type SubscriptionFields = Pick<Subscription, 'name' | 'url' | 'types' | 'plugins' | 'enabled'>;

const COLUMNS = 'id, name, url, types, plugins, enabled, disabled_why, created_at, updated_at';

/** An address may hold a secret of the subscriber's in its query. */
export const withoutQuery = (url: string): string => url.replace(/\?.*/s, '?...');

const stateOf = (f: SubscriptionFields): AuditState => ({
  name: f.name,
  url: withoutQuery(f.url),
  types: f.types,
  plugins: f.plugins,
  enabled: f.enabled,
});

/** A secret belongs to the address it was made for. */
const owner = (url: string): string => `event_subscription:${url}`;

/** A secret as Standard Webhooks has it: 32 random bytes. */
const makeSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/** Adds a subscription. @returns it with its secret, which is shown once */
export async function addSubscription(
  client: Queryable,
  box: SecretBox,
  f: SubscriptionFields,
  by: Actor,
): Promise<{ subscription: Subscription; secret: string }> {
  const secret = makeSecret();
  const subscription = await loadRow<Subscription>(
    client,
    `INSERT INTO event_subscriptions (name, url, secret, types, plugins, enabled) VALUES ($1, $2, $3, $4, $5, $6) RETURNING ${COLUMNS}`,
    [f.name, f.url, box.seal(secret, owner(f.url)), f.types, f.plugins, f.enabled],
  );
  await appendAudit(client, by, {
    action: 'event.subscribe',
    objectType: 'event_subscription',
    objectId: String(subscription.id),
    after: stateOf(subscription),
  });
  return { subscription, secret };
}

/**
 * Changes a subscription; members that are left out keep what is stored. Another address, or the wish for one, makes another secret.
 *
 * @returns undefined when there is none
 */
export async function changeSubscription(
  client: Queryable,
  box: SecretBox,
  id: number,
  change: Partial<SubscriptionFields>,
  newSecret: boolean,
  by: Actor,
): Promise<{ subscription: Subscription; secret: string | null } | undefined> {
  const before = await findRow<Subscription>(
    client,
    `SELECT ${COLUMNS} FROM event_subscriptions WHERE id = $1 FOR UPDATE`,
    [id],
  );
  if (before === undefined) return undefined;
  const f = { ...before, ...change };
  const secret = newSecret || f.url !== before.url ? makeSecret() : null;
  const subscription = await loadRow<Subscription>(
    client,
    `UPDATE event_subscriptions SET name = $2, url = $3, types = $4, plugins = $5, enabled = $6, secret = coalesce($7, secret),
       disabled_why = CASE WHEN $6 THEN '' ELSE disabled_why END, updated_at = now() WHERE id = $1 RETURNING ${COLUMNS}`,
    [id, f.name, f.url, f.types, f.plugins, f.enabled, secret === null ? null : box.seal(secret, owner(f.url))],
  );
  await appendAudit(client, by, {
    action: 'event.change_subscription',
    objectType: 'event_subscription',
    objectId: String(id),
    before: stateOf(before),
    after: { ...stateOf(f), ...(secret === null ? {} : { new_secret: true }) },
  });
  return { subscription, secret };
}

/** Removes a subscription with all it was still to be told. @returns whether there was one */
export async function removeSubscription(client: Queryable, id: number, by: Actor): Promise<boolean> {
  const removed = await findRow<Subscription>(
    client,
    `DELETE FROM event_subscriptions WHERE id = $1 RETURNING ${COLUMNS}`,
    [id],
  );
  if (removed === undefined) return false;
  await appendAudit(client, by, {
    action: 'event.unsubscribe',
    objectType: 'event_subscription',
    objectId: String(id),
    before: stateOf(removed),
  });
  return true;
}

export async function findSubscription(db: Queryable, id: number): Promise<Subscription | undefined> {
  return await findRow<Subscription>(db, `SELECT ${COLUMNS} FROM event_subscriptions WHERE id = $1`, [id]);
}

export async function listSubscriptions(db: Queryable, before: number, limit: number): Promise<Subscription[]> {
  return await findRows<Subscription>(
    db,
    `SELECT ${COLUMNS} FROM event_subscriptions WHERE id < $1 ORDER BY id DESC LIMIT $2`,
    [before, limit],
  );
}

/**
 * Where events go to, with the secret they are signed with; undefined when the subscription is gone or switched off.
 *
 * @throws SecretUnreadable
 */
export async function findTarget(
  db: Queryable,
  box: SecretBox,
  id: number,
): Promise<{ url: string; secret: string } | undefined> {
  const row = await findRow<{ url: string; secret: Buffer }>(
    db,
    'SELECT url, secret FROM event_subscriptions WHERE id = $1 AND enabled',
    [id],
  );
  return row === undefined ? undefined : { url: row.url, secret: box.open(row.secret, owner(row.url)) };
}

/**
 * What is still to be told waits until an administrator decides.
 *
 * @param url the address it was found at; one that was changed meanwhile stays switched on. Null for any.
 */
export async function switchOff(db: Queryable, id: number, why: string, url: string | null = null): Promise<void> {
  await db.query(
    `UPDATE event_subscriptions SET enabled = false, disabled_why = $2, updated_at = now()
     WHERE id = $1 AND ($3::text IS NULL OR url = $3)`,
    [id, why, url],
  );
}

/** Stored secrets of all subscriptions, with what each is bound to; their rows stay as they are until the transaction ends. */
export async function listSealedSubscriptionSecrets(
  client: Queryable,
): Promise<Array<{ id: number; name: string; secret: Buffer; owner: string }>> {
  const rows = await findRows<{ id: number; name: string; url: string; secret: Buffer }>(
    client,
    'SELECT id, name, url, secret FROM event_subscriptions ORDER BY id FOR UPDATE',
  );
  return rows.map(({ url, ...r }) => ({ ...r, owner: owner(url) }));
}

/** Replaces the stored secret of a subscription. */
export async function setSealedSubscriptionSecret(client: Queryable, id: number, sealed: Buffer): Promise<void> {
  await client.query('UPDATE event_subscriptions SET secret = $2 WHERE id = $1', [id, sealed]);
}

/** Replaces a secret that was lost by a random one that no subscriber has; the subscription rests until an administrator asks for a new one. */
export async function loseSubscriptionSecret(client: Queryable, box: SecretBox, id: number): Promise<void> {
  const { rows } = await client.query<{ url: string }>('SELECT url FROM event_subscriptions WHERE id = $1', [id]);
  await setSealedSubscriptionSecret(client, id, box.seal(makeSecret(), owner(rows[0]?.url ?? '')));
  await switchOff(client, id, 'its secret was lost with secrets.key; ask for a new one with new_secret');
}
