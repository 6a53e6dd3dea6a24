import { ServiceError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Config } from '../config/load.ts';
import { findAdminByEmail } from '../identity/admin-accounts.ts';
import { ADMIN_SCOPES, addAdminKey, isScope } from '../identity/admin-keys.ts';
import { actor, CommandError, withCurrentDatabase } from './admin-commands.ts';

export type AdminKeyOptions = {
  email: string | undefined;
  name: string | undefined;
  scopes: readonly string[];
  json: boolean;
};

const NAME_MAX = 100;

/** @throws CommandError when an option is missing, or is none */
function checked({ email, name, scopes }: AdminKeyOptions): { email: string; name: string } {
  if (email === undefined)
    throw new CommandError('this command needs --email ADDRESS of the administrator the key belongs to');
  if (name === undefined || name.trim() === '' || name.length > NAME_MAX)
    throw new CommandError(
      `this command needs --name, which says what the key is for, in ${NAME_MAX} characters at most`,
    );
  if (scopes.length === 0) throw new CommandError(`this command needs --scope: ${ADMIN_SCOPES.join(', ')}`);
  const wrong = scopes.find(s => !isScope(s));
  if (wrong !== undefined)
    throw new CommandError(`--scope is ${JSON.stringify(wrong)}; it must be one of ${ADMIN_SCOPES.join(', ')}`);
  return { email, name: name.trim() };
}

/**
 * `admin key`: makes an administration key on the machine itself, for an operator who has no browser at hand.
 *
 * @returns what to print: the key, which is shown once
 * @throws CommandError in words for the operator
 */
export async function adminKey(
  config: Config,
  options: AdminKeyOptions,
  progress: (text: string) => void,
): Promise<string> {
  const { email, name } = checked(options);
  try {
    return await withCurrentDatabase(config, progress, async db => {
      const admin = await findAdminByEmail(db, email);
      if (admin === undefined) throw new CommandError(`there is no administrator ${email}: plugin-host admin list`);
      const expiresAt = new Date(Date.now() + LIMITS.adminKeyDefaultMs);
      const wanted = { name, scopes: [...new Set(options.scopes)], madeBy: admin.userId, expiresAt };
      const { key, text } = await addAdminKey(db, config.values['admin.key_prefix'], wanted, actor());
      if (!options.json)
        return `${text}\nvalid until ${expiresAt.toISOString()}, and as long as ${email} is an administrator`;
      return JSON.stringify({ id: key.id, key: text, scopes: key.scopes, expires_at: expiresAt });
    });
  } catch (error) {
    if (error instanceof ServiceError) throw new CommandError(error.message, { cause: error });
    throw error;
  }
}
