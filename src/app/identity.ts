import { checkSetup, fromHere, Guards } from '../api/contract/guards.ts';
import { SessionCookies } from '../api/contract/session-cookies.ts';
import { adminKeyRoutes } from '../api/identity/admin-keys-api.ts';
import { adminRoutes } from '../api/identity/admins-api.ts';
import { authRoutes } from '../api/identity/auth-api.ts';
import { idpRoutes } from '../api/identity/idp-api.ts';
import { serviceKeyRoutes } from '../api/identity/service-keys-api.ts';
import { userRoutes } from '../api/identity/users-api.ts';
import { adminPageRoutes } from '../api/operation/admin-page.ts';
import { pluginSessionRoutes } from '../api/plugins/plugin-session-api.ts';
import { messageOf } from '../base/errors.ts';
import { isTrustworthy, publicBaseOf } from '../config/load.ts';
import type { MailOrder } from '../identity/admin-accounts.ts';
import { removeExpiredChallenges } from '../identity/challenges.ts';
import { IDENTITY_CHANGED, parseIdentityChange } from '../identity/identity-changes.ts';
import { IdpLogin } from '../identity/idp-login.ts';
import { KnownBrowsers } from '../identity/known-browsers.ts';
import { removeOldFailures } from '../identity/login-throttle.ts';
import { PageProofs } from '../identity/page-proof.ts';
import { countPasskeysElsewhere } from '../identity/passkeys.ts';
import { removeOldPluginLogins } from '../identity/plugin-sessions.ts';
import { Principals } from '../identity/principals.ts';
import { removeEndedSessions } from '../identity/sessions.ts';
import { TEMPORARY_PASSWORD_QUEUE } from '../messaging/temporary-password-job.ts';
import { hostBearerOf } from '../triggers/trigger-event.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';
import { personParts } from './person-data.ts';
import type { Plugins } from './plugins.ts';

export type Identity = Feature & {
  principals: Principals;
  guards: Guards;
  /** Whether an identity provider is configured. */
  hasLogin: boolean;
  /** What an `Authorization` of the host's own looks like. */
  hostBearer: RegExp;
};

/** Knows who calls: principals of triggers, guards of the API, logins, keys, and our own pages. */
export function composeIdentity(
  core: Core,
  parts: Pick<Plugins, 'registry' | 'origins'> & { setupToken: string; pages: string | null },
): Identity {
  const { changes, config, db, jobs, log, publicBase, secrets } = core;
  const v = config.values;
  const prefixes = { userToken: v['admin.user_token_prefix'], serviceKey: v['admin.service_key_prefix'] };
  const timesNotWritten = (error: unknown): void =>
    log.warn({ error: messageOf(error) }, 'last-used times could not be written yet');
  const principals = new Principals(
    db,
    prefixes,
    changes,
    timesNotWritten,
    undefined,
    host => parts.origins?.pluginAt(host) ?? null,
  );
  // The scheme of the public address does not depend on the port.
  const isSecure = v['http.tls.cert'] !== '' || publicBaseOf(config, v['http.port']).startsWith('https:');
  const cookies = new SessionCookies(isSecure, new KnownBrowsers(secrets));
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
  const proofs = new PageProofs(core.secretKey);
  const setup = { mode: v['admin.setup'], token: parts.setupToken, proofs };
  const keys = {
    setup,
    ...{ apiKey: v['admin.api_key'], keyPrefix: v['admin.key_prefix'] },
    isSecondFactorRequired: v['admin.second_factor'] === 'required',
  };
  const guards = new Guards(db, keys, timesNotWritten);
  return {
    principals,
    guards,
    hasLogin: idp.isConfigured,
    hostBearer: hostBearerOf([prefixes.userToken, prefixes.serviceKey, v['admin.key_prefix']]),
    routes: [
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
        sealer: secrets,
        publicUrl: v['http.public_url'],
        isSecondFactorRequired: v['admin.second_factor'] === 'required',
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
        queueMail: (client, order: MailOrder) => jobs.enqueue(client, TEMPORARY_PASSWORD_QUEUE, order),
      }),
      ...userRoutes({ db, ...personParts(db) }),
      ...adminKeyRoutes({ db, prefix: v['admin.key_prefix'] }),
      ...serviceKeyRoutes({ db, registry: parts.registry, prefix: prefixes.serviceKey }),
      ...adminPageRoutes({ proofs, inSetupMode: () => guards.inSetupMode(), pages: parts.pages }),
    ],
    channels: { [IDENTITY_CHANGED]: payload => principals.changed(parseIdentityChange(payload)) },
    readAll: () => principals.changed(null),
    repeated: [
      {
        everyMs: 300_000,
        what: 'removing ended sessions',
        run: () =>
          Promise.all([
            removeEndedSessions(db),
            removeOldFailures(db),
            removeOldPluginLogins(db),
            removeExpiredChallenges(db),
          ]),
      },
    ],
    start() {
      if (v['http.public_url'] === '') return;
      const { hostname } = new URL(v['http.public_url']);
      countPasskeysElsewhere(db, hostname).then(
        count => {
          if (count === 0) return;
          log.warn(
            { passkeys: count, host: hostname },
            'passkeys were made for another host name than the one of http.public_url, and do not work: make them again',
          );
        },
        (error: unknown) => log.warn({ error: messageOf(error) }, 'passkeys could not be counted'),
      );
    },
    async close() {
      await principals.close();
      await guards.close();
    },
  };
}
