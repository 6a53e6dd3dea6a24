import { z } from 'zod';
import { appendAudit } from '../../audit/audit-log.ts';
import type { Database, Queryable } from '../../db/database.ts';
import { NO_STORE, type Request } from '../../http/message.ts';
import type { AdminAccount } from '../../identity/admin-accounts.ts';
import { ADMIN_ROLES, scopesOf } from '../../identity/admin-roles.ts';
import type { PageProofs } from '../../identity/page-proof.ts';
import type { PasswordlessMethod, SecondMethod } from '../../identity/second-factor.ts';
import type { Session } from '../../identity/sessions.ts';
import type { Sealer } from '../../identity/totp.ts';
import { actorOfAccount, type Caller } from '../contract/caller.ts';
import { id } from '../contract/fields.ts';
import type { SessionCookies } from '../contract/session-cookies.ts';

export type AdminCaller = Extract<Caller, { kind: 'admin' }>;

/** What begins sessions of administrators. */
export type AdminSessionParts = {
  db: Database;
  cookies: SessionCookies;
  proofs: PageProofs;
  /** Encrypts secrets of authenticator apps. */
  sealer: Sealer;
  /** `http.public_url`; empty for none. */
  publicUrl: string;
  /** Whether administrators with a password need a second factor (`admin.second_factor`). */
  isSecondFactorRequired: boolean;
  /** @throws ServiceError `forbidden` for what a page of another origin sends */
  fromHere(request: Request): void;
  /** A password or a second factor was wrong. */
  loginFailed(of: { address: string; request_id: string }): void;
};

const account = z
  .object({
    global_user_id: id,
    email: z.string(),
    must_change_password: z.boolean().describe('Whether the password is a temporary one that opens nothing else'),
    must_add_second_factor: z.boolean().describe('Whether a second factor must be added before anything else'),
    roles: z.array(z.enum(ADMIN_ROLES)),
    scopes: z.array(z.string()).describe('What the roles open; admin includes the others, and owners may do more'),
  })
  .meta({ id: 'CurrentAdmin' });

export const currentAdmin = account;

export const loggedIn = z
  .object({
    admin: account,
    page_proof: z.string().describe('Value of the header X-Page-Proof, which requests of browsers need'),
  })
  .meta({ id: 'AdminLogin' });

/** Both sessions of an administrator: the second is for the frontends of plugins (docs/identity.md "Sessions"). */
export async function openAdminSession(
  parts: AdminSessionParts,
  client: Queryable,
  request: Request,
  admin: AdminAccount,
) {
  const { cookies, proofs } = parts;
  const { headers, secrets } = await cookies.open(client, request, admin.userId, ['admin', 'user'], {
    via: 'password',
  });
  const proof = proofs.make('admin', secrets.admin ?? '');
  return {
    status: 200 as const,
    json: { admin: adminJson(parts, admin), page_proof: proof },
    headers: [...headers, NO_STORE],
  };
}

/**
 * Both sessions of an administrator who gave no password. The proof of the page does not come with them: a page of a plugin can ask
 * the browser for a passkey (docs/SECURITY.md "The proof of our pages").
 */
export async function openPasswordless(
  parts: AdminSessionParts,
  client: Queryable,
  request: Request,
  admin: AdminAccount,
  via: PasswordlessMethod,
) {
  const { headers } = await parts.cookies.open(client, request, admin.userId, ['admin', 'user'], { via });
  return { status: 200 as const, json: { admin: adminJson(parts, admin) }, headers: [...headers, NO_STORE] };
}

/** Notes who logged in, and by what besides or instead of the password. Part of a transaction. */
export async function noteLogin(
  client: Queryable,
  admin: AdminAccount,
  request: Request,
  by?: { second_factor: SecondMethod | null } | { instead_of_password: PasswordlessMethod },
): Promise<void> {
  await appendAudit(client, actorOfAccount(admin, request), {
    action: 'admin.login',
    objectType: 'user',
    objectId: String(admin.userId),
    ...(by === undefined ? {} : { after: by }),
  });
}

/** An account that came through the identity provider needs no password of ours, and so changes none. */
export const adminJson = (
  { isSecondFactorRequired }: Pick<AdminSessionParts, 'isSecondFactorRequired'>,
  a: AdminAccount,
  session?: Session,
) => ({
  global_user_id: a.userId,
  email: a.email,
  must_change_password: a.mustChangePassword && session?.via !== 'idp',
  must_add_second_factor: isSecondFactorRequired && !a.hasSecondFactor && session?.via !== 'idp',
  roles: [...a.roles],
  scopes: scopesOf(a),
});

export function adminOf(caller: Caller): AdminCaller {
  if (caller.kind !== 'admin') throw new Error('bug: this route needs the guard "admin"');
  return caller;
}
