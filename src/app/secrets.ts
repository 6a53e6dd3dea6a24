import type { Config } from '../config/load.ts';
import { dataPath } from '../config/load.ts';
import type { Database, Queryable } from '../db/database.ts';
import {
  listSealedSubscriptionSecrets,
  loseSubscriptionSecret,
  setSealedSubscriptionSecret,
} from '../events/subscriptions.ts';
import { listPasskeys } from '../identity/passkeys.ts';
import { removeRecoveryCodes } from '../identity/recovery-codes.ts';
import { listSealedTotp, removeTotp, setSealedTotp, totpOwner } from '../identity/totp.ts';
import { configFieldsOf, databasesOf } from '../plugins/manifest.ts';
import { listSealedSecrets, loseSecrets, setSealedSecrets } from '../plugins/plugin-store.ts';
import { NO_SECRETS, secretsOwner } from '../plugins/registry.ts';
import { makeSecretBox, type SecretBox } from '../secrets/secret-box.ts';
import {
  assertFits,
  findSecretKey,
  fingerprintOf,
  type KeyPlace,
  makeFirstKey,
  readFingerprint,
  SecretKeyError,
  writeFingerprint,
} from '../secrets/secret-key.ts';

/** One stored secret: what it is bound to, how it is replaced, and what its loss means. */
export type SealedSecret = {
  sealed: Buffer;
  owner: string;
  replace(sealed: Buffer): Promise<void>;
  /** Takes it away. @returns what must be entered again, or null when nothing was lost */
  lose(box: SecretBox): Promise<string | null>;
};

export const keyPlaceOf = (config: Config): KeyPlace => ({
  configured: config.values['secrets.key'],
  file: dataPath(config, 'secrets.key'),
});

/** Every secret in the database that is under `secrets.key`; a table that gets another one is added here. */
export async function listSealed(client: Queryable): Promise<SealedSecret[]> {
  const plugins = (await listSealedSecrets(client)).map(
    (v): SealedSecret => ({
      sealed: v.secrets,
      owner: secretsOwner(v.pluginId),
      replace: sealed => setSealedSecrets(client, v.id, sealed),
      async lose(box) {
        const fields = configFieldsOf(v.manifest).flatMap(f => (f.sensitive ? [f.name] : []));
        const lost = [...fields, ...databasesOf(v.manifest).map(name => `databases.${name}`)];
        if (lost.length === 0) {
          await setSealedSecrets(client, v.id, box.seal(JSON.stringify(NO_SECRETS), secretsOwner(v.pluginId)));
          return null;
        }
        if (!(await loseSecrets(client, v.pluginId, v.id))) return null;
        return `plugin ${v.pluginId} ${v.version}: config ${lost.join(', ')}; install it again with them, then enable it`;
      },
    }),
  );
  const subscriptions = (await listSealedSubscriptionSecrets(client)).map(
    (s): SealedSecret => ({
      sealed: s.secret,
      owner: s.owner,
      replace: sealed => setSealedSubscriptionSecret(client, s.id, sealed),
      async lose(box) {
        await loseSubscriptionSecret(client, box, s.id);
        return `event subscription ${s.id} "${s.name}": ask for a new secret with new_secret, give it to the subscriber, then enable it`;
      },
    }),
  );
  const apps = (await listSealedTotp(client)).map(
    ({ email, sealed, userId }): SealedSecret => ({
      sealed,
      owner: totpOwner(userId),
      replace: fresh => setSealedTotp(client, userId, fresh),
      async lose() {
        await removeTotp(client, userId);
        const hasPasskey = (await listPasskeys(client, userId)).length > 0;
        if (!hasPasskey) await removeRecoveryCodes(client, userId);
        const left = hasPasskey ? 'passkeys go on' : 'the password alone logs in until then';
        return `administrator ${email}: the authenticator app no longer counts, add it again; ${left}`;
      },
    }),
  );
  return [...plugins, ...subscriptions, ...apps];
}

/** Opens all of them, which tells whether a key is theirs. */
function opensAll(key: Buffer, all: readonly SealedSecret[]): boolean {
  const box = makeSecretBox(key);
  try {
    for (const { owner, sealed } of all) box.open(sealed, owner);
    return true;
  } catch {
    return false;
  }
}

/**
 * The key stored secrets are under. The first start makes it and notes its fingerprint in the database; from then on no other
 * key is taken, and none is made.
 *
 * @throws SecretKeyError that says what to do
 */
export async function openSecretKey(db: Database, place: KeyPlace): Promise<Buffer> {
  const noted = await readFingerprint(db, '');
  const found = findSecretKey(place, noted);
  if (noted !== null) return assertFits(place, found, noted);
  return await db.withTransaction(async client => {
    // Another host may have been first meanwhile.
    const first = await readFingerprint(client, 'FOR UPDATE');
    if (first !== null) return assertFits(place, findSecretKey(place, first), first);
    const all = await listSealed(client);
    if (all.length > 0 && (found === null || !opensAll(found, all)))
      throw new SecretKeyError(
        `the database holds secrets of another key than ${place.configured === '' ? place.file : 'secrets.key (BOT_SECRETS_KEY)'}: put the right key back; if it is lost, run: plugin-host secrets reset`,
      );
    const key = found ?? makeFirstKey(place.file);
    await writeFingerprint(client, fingerprintOf(key));
    return key;
  });
}

/**
 * Looks again once this host can be seen by `secrets rotate`, which runs while no service does: a rotation that began before has
 * either seen this host, or is waited for here.
 */
export async function confirmSecretKey(db: Database, key: Buffer): Promise<void> {
  const noted = await db.withTransaction(client => readFingerprint(client, 'FOR SHARE'));
  if (noted !== fingerprintOf(key))
    throw new SecretKeyError('the stored secrets were put under a new key while the service started: start it again');
}
