import { ServiceError, UsageError } from '../../base/errors.ts';
import { LIMITS } from '../../base/limits.ts';
import type { Config } from '../../config/load.ts';
import { findAdminByEmail } from '../../identity/admin-accounts.ts';
import { addAdminKey } from '../../identity/admin-keys.ts';
import { ADMIN_SCOPES, isScope, scopeBeyond, scopesOf } from '../../identity/admin-roles.ts';
import { jsonText } from '../print/json-text.ts';
import { expiryTime } from '../remote/given-time.ts';
import { actor, CommandError, withCurrentDatabase } from './admin-commands.ts';

export type AdminKeyOptions = {
  email: string | undefined;
  name: string | undefined;
  scopes: readonly string[];
  /** When it ends: a length of time, a time, or never; undefined for the default of the API. */
  expires: string | undefined;
  json: boolean;
};

const NAME_MAX = 100;

/** @throws UsageError when an option is missing or wrong */
function checked(options: AdminKeyOptions): { email: string; name: string; expiresAt: Date | null } {
  const { email, expires, name, scopes } = options;
  if (email === undefined)
    throw new UsageError('this command needs --email ADDRESS of the administrator the key belongs to');
  if (name === undefined || name.trim() === '' || name.length > NAME_MAX)
    throw new UsageError(
      `this command needs --name, which says what the key is for, in ${NAME_MAX} characters at most`,
    );
  if (scopes.length === 0) throw new UsageError(`this command needs --scope: ${ADMIN_SCOPES.join(', ')}`);
  const wrong = scopes.find(s => !isScope(s));
  if (wrong !== undefined)
    throw new UsageError(`--scope is ${JSON.stringify(wrong)}; it must be one of ${ADMIN_SCOPES.join(', ')}`);
  const expiresAt = expires === undefined ? new Date(Date.now() + LIMITS.adminKeyDefaultMs) : expiryTime(expires);
  return { email, name: name.trim(), expiresAt };
}

/**
 * `admin key`: makes an administration key on the machine itself, for an operator who has no browser at hand.
 *
 * @returns what to print: the key, which is shown once
 * @throws UsageError when an option is missing or wrong, CommandError when it cannot be done
 */
export async function adminKey(
  config: Config,
  options: AdminKeyOptions,
  progress: (text: string) => void,
): Promise<string> {
  const { email, expiresAt, name } = checked(options);
  try {
    return await withCurrentDatabase(config, progress, async db => {
      const admin = await findAdminByEmail(db, email);
      if (admin === undefined) throw new CommandError(`there is no administrator ${email}: plugin-host admin list`);
      const beyond = scopeBeyond(scopesOf(admin), options.scopes);
      if (beyond !== undefined)
        throw new CommandError(
          `${email} has the roles ${admin.roles.join(', ')}, which do not include the scope ${beyond} of this key`,
        );
      const wanted = { name, scopes: [...new Set(options.scopes)], madeBy: admin.userId, expiresAt };
      const { key, text } = await addAdminKey(db, config.values['admin.key_prefix'], wanted, actor(), null);
      const until = key.expiresAt === null ? 'valid without an end' : `valid until ${key.expiresAt.toISOString()}, and`;
      if (!options.json) return `${text}\n${until} as long as ${email} is an administrator`;
      return jsonText({ id: key.id, key: text, scopes: key.scopes, expires_at: key.expiresAt });
    });
  } catch (error) {
    if (error instanceof ServiceError) throw new CommandError(error.message, { cause: error });
    throw error;
  }
}
