import type { Queryable } from '../db/database.ts';
import { RowLookup } from '../db/row-lookup.ts';
import { parseBearer, secretMatches } from './bearer-secret.ts';

/** What all kinds of bearer credentials have: user tokens, service keys, administration keys. */
export type BearerCredential = { id: number; public: string; expiresAt: Date | null };

/** Hashes of the present secret and of the one before the last rotation, with the end of the time in which that one is valid. */
type Hashes = { secretSha256: Buffer; oldSecretSha256?: Buffer | null; oldSecretUntil?: Date | null };

export type BearerTableOptions = {
  name: 'user_tokens' | 'service_keys' | 'admin_keys';
  /** Columns of a row `t` that make the credential, without the hashes of its secrets. */
  columns: string;
  /** Whether its secrets can be rotated, so that an old one is valid for a while. */
  rotates: boolean;
};

/** The table of one kind of bearer credentials (docs/identity.md "Credentials"). */
export class BearerTable<Credential extends BearerCredential> {
  readonly #options: BearerTableOptions;
  readonly #byPublic: RowLookup<Credential & Hashes>;

  constructor(options: BearerTableOptions) {
    const { columns, name, rotates } = options;
    this.#options = options;
    this.#byPublic = new RowLookup({
      name: `${name}.find`,
      text: `SELECT ${columns}, t.secret_sha256${rotates ? ', t.old_secret_sha256' : ''} FROM ${name} t
        WHERE t.public = ANY ($1::text[])`,
      keyOf: row => row.public,
    });
  }

  /**
   * The credential with this text; undefined if it has another format, is unknown, wrong, expired, revoked, or replaced
   * by a rotation.
   */
  async verify(db: Queryable, prefix: string, text: string, nowMs: number): Promise<Credential | undefined> {
    const parts = parseBearer(text, prefix);
    if (parts === null) return undefined;
    const row = await this.#byPublic.find(db, parts.public);
    const { oldSecretSha256 = null, oldSecretUntil = null, secretSha256 = null } = row ?? {};
    const isOldValid = oldSecretUntil !== null && oldSecretUntil.getTime() > nowMs;
    // Two comparisons, whether there is a row or not.
    const isRight = secretMatches(parts.secret, secretSha256, isOldValid ? oldSecretSha256 : null);
    if (!isRight || row === undefined) return undefined;
    return row.expiresAt !== null && row.expiresAt.getTime() <= nowMs ? undefined : withoutHashes(row);
  }

  /** Writes when credentials were used last. */
  async touch(db: Queryable, entries: ReadonlyArray<{ id: number; at: Date }>): Promise<void> {
    await db.query(
      `UPDATE ${this.#options.name} t SET last_used_at = greatest(t.last_used_at, u.at)
       FROM unnest($1::bigint[], $2::timestamptz[]) AS u (id, at) WHERE t.id = u.id`,
      [entries.map(e => e.id), entries.map(e => e.at)],
    );
  }

  /** Lets every credential expire now, also secrets of before their last rotation; returns how many were valid. */
  async expireAll(client: Queryable): Promise<number> {
    const { name, rotates } = this.#options;
    const { rowCount } = await client.query(
      `UPDATE ${name} SET expires_at = now()${rotates ? ', old_until = now()' : ''}
       WHERE expires_at IS NULL OR expires_at > now()`,
    );
    return rowCount ?? 0;
  }
}

/** The credential travels with the request; the hashes stay here. */
function withoutHashes<Credential extends BearerCredential>(row: Credential & Hashes): Credential {
  const credential: Credential & Partial<Hashes> = { ...row };
  delete credential.secretSha256;
  delete credential.oldSecretSha256;
  return credential;
}
