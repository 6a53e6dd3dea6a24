import { adminKeyRoutes } from '../api/admin-keys-api.ts';
import { adminPageRoutes } from '../api/admin-page.ts';
import { adminRoutes } from '../api/admins-api.ts';
import { authRoutes } from '../api/auth-api.ts';
import { checkSetup, fromHere, Guards } from '../api/guards.ts';
import { idpRoutes } from '../api/idp-api.ts';
import { pluginSessionRoutes } from '../api/plugin-session-api.ts';
import type { Route } from '../api/route.ts';
import { serviceKeyRoutes } from '../api/service-keys-api.ts';
import { SessionCookies } from '../api/session-cookies.ts';
import { userRoutes } from '../api/users-api.ts';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type Config, isTrustworthy } from '../config/load.ts';
import type { PluginOrigins } from '../config/plugin-origins.ts';
import type { Database, Queryable } from '../db/database.ts';
import type { ChangeStatus } from '../db/notifications.ts';
import type { MailOrder } from '../identity/admin-accounts.ts';
import { IdpLogin } from '../identity/idp-login.ts';
import { KnownBrowsers } from '../identity/known-browsers.ts';
import { PageProofs } from '../identity/page-proof.ts';
import { Principals } from '../identity/principals.ts';
import { TEMPORARY_PASSWORD_QUEUE } from '../messaging/temporary-password-job.ts';
import type { PluginRegistry } from '../plugins/registry.ts';
import type { SecretBox } from '../plugins/secret-box.ts';
import { hostBearerOf } from '../triggers/trigger-event.ts';

export type IdentityParts = {
  db: Database;
  config: Config;
  log: Log;
  secretKey: Buffer;
  secrets: SecretBox;
  setupToken: string;
  changes: ChangeStatus;
  registry: PluginRegistry;
  origins: PluginOrigins | null;
  /** Address users see. */
  publicBase(): string;
};

export type Identity = {
  principals: Principals;
  guards: Guards;
  /** Whether an identity provider is configured. */
  hasLogin: boolean;
  /** What an `Authorization` of the host's own looks like. */
  hostBearer: RegExp;
  routes(of: { enqueue(client: Queryable, queue: string, data: object): Promise<void> }): Route[];
  close(): Promise<void>;
};

/** Builds what knows who calls: principals of triggers, guards of the API, logins, keys, and our own pages. */
export function composeIdentity(parts: IdentityParts): Identity {
  const { config, db, log, publicBase, secrets } = parts;
  const v = config.values;
  const prefixes = { userToken: v['admin.user_token_prefix'], serviceKey: v['admin.service_key_prefix'] };
  const timesNotWritten = (error: unknown): void =>
    log.warn({ error: messageOf(error) }, 'last-used times could not be written yet');
  const principals = new Principals(
    db,
    prefixes,
    parts.changes,
    timesNotWritten,
    undefined,
    host => parts.origins?.pluginAt(host) ?? null,
  );
  const cookies = new SessionCookies(v['http.public_url'].startsWith('https:'), new KnownBrowsers(secrets));
  const idp = new IdpLogin(
    {
      issuer: v['idp.issuer'],
      clientId: v['idp.client_id'],
      clientSecret: v['idp.client_secret'],
      scopes: v['idp.scopes'],
      redirectUri: () => `${publicBase()}/api/auth/idp/callback`,
    },
    secrets,
  );
  const proofs = new PageProofs(parts.secretKey);
  const setup = { mode: v['admin.setup'], token: parts.setupToken, proofs };
  const keys = { setup, apiKey: v['admin.api_key'], keyPrefix: v['admin.key_prefix'] };
  const guards = new Guards(db, keys, timesNotWritten);
  return {
    principals,
    guards,
    hasLogin: idp.isConfigured,
    hostBearer: hostBearerOf([prefixes.userToken, prefixes.serviceKey, v['admin.key_prefix']]),
    routes: ({ enqueue }) => [
      ...authRoutes({
        db,
        userTokenPrefix: prefixes.userToken,
        cookies,
        idp: idp.isConfigured,
        inSetupMode: () => guards.inSetupMode(),
        adminSession: request => guards.adminSession(request),
        isProven: (session, request) => guards.isProven(session, request),
        proofs,
        loginFailed: of => log.warn(of, 'login failed'),
        checkSetup: request => checkSetup(request, setup),
        fromHere,
      }),
      ...(parts.origins === null
        ? []
        : pluginSessionRoutes({
            ...{ db, cookies, publicBase, registry: parts.registry, origins: parts.origins },
            hasLogin: idp.isConfigured,
          })),
      ...idpRoutes({ db, idp, cookies, trusted: () => isTrustworthy(publicBase()) }),
      ...adminRoutes({
        db,
        queueMail: (client, order: MailOrder) => enqueue(client, TEMPORARY_PASSWORD_QUEUE, order),
      }),
      ...userRoutes({ db }),
      ...adminKeyRoutes({ db, prefix: v['admin.key_prefix'] }),
      ...serviceKeyRoutes({ db, registry: parts.registry, prefix: prefixes.serviceKey }),
      ...adminPageRoutes(proofs, () => guards.inSetupMode()),
    ],
    async close() {
      await principals.close();
      await guards.close();
    },
  };
}
