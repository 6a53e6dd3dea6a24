import { ServiceError } from '../base/errors.ts';
import { NO_RULES } from './network-rules.ts';
import type { VersionRow } from './plugin-store.ts';

/** Called with a description of rights that an installation adds; throws if the caller may not add them. */
export type CheckWidening = (what: string) => void;

/** The rights of a version. */
type Allowed = Pick<VersionRow, 'permissions' | 'network'>;

/** Calls `check` for rights of a version that the installed one does not have. */
export function checkWidening(after: Allowed, before: Allowed | undefined, check: CheckWidening): void {
  const added = after.permissions.filter(p => before?.permissions.includes(p) !== true);
  if (added.length > 0) check(`an installation with new permissions (${added.join(', ')})`);
  if (JSON.stringify(after.network) !== JSON.stringify(before?.network ?? NO_RULES))
    check('an installation that changes which hosts the plugin may reach (network)');
}

/** @throws ServiceError `permissions_not_accepted` with the new ones that were not accepted */
export function requireAccepted(
  asked: readonly string[],
  held: readonly string[],
  accepted: true | readonly string[],
): void {
  const added = asked.filter(p => !held.includes(p));
  const open = accepted === true ? [] : added.filter(p => !accepted.includes(p));
  if (open.length === 0) return;
  throw new ServiceError(
    'permissions_not_accepted',
    `this version asks for permissions the installed one does not have: ${open.join(', ')}`,
    {
      errors: [
        { pointer: '/accept_permissions', message: `must be true or name ${open.join(', ')}`, code: 'not_accepted' },
      ],
      extra: { new_permissions: added },
    },
  );
}
