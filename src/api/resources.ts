import { access } from './access-api.ts';
import { activity } from './activity-api.ts';
import { adminKeys } from './admin-keys-api.ts';
import { admins } from './admins-api.ts';
import { attention } from './attention-api.ts';
import { audit } from './audit-api.ts';
import { adminLogin } from './auth-api.ts';
import { commands } from './commands-api.ts';
import { config } from './config-api.ts';
import type { Resource } from './contract.ts';
import { databases } from './databases-api.ts';
import { doctor } from './doctor-api.ts';
import { drift } from './drift-api.ts';
import { eventSubscriptions } from './event-subscriptions-api.ts';
import { events } from './events-api.ts';
import { executions } from './executions-api.ts';
import { userFiles } from './files-api.ts';
import { frontends } from './frontends-api.ts';
import { gallery } from './gallery-api.ts';
import { graphSchema } from './graph-schema-api.ts';
import { health } from './health-api.ts';
import { hosts } from './hosts-api.ts';
import { idpLogin } from './idp-api.ts';
import { jobs } from './jobs-api.ts';
import { mail } from './mail-api.ts';
import { messages } from './messages-api.ts';
import { messengerAccounts, userMessengerAccounts } from './messenger-accounts-api.ts';
import { messengerWebhooks } from './messengers-api.ts';
import { outbox } from './outbox-api.ts';
import { ownSecondFactor } from './own-second-factor.ts';
import { passwordlessLogin } from './passwordless-api.ts';
import { pluginFiles } from './plugin-files-api.ts';
import { pluginSessions } from './plugin-session-api.ts';
import { plugins } from './plugins-api.ts';
import { policies } from './policies-api.ts';
import { relationships } from './relationships-api.ts';
import { roles } from './roles-api.ts';
import { secondLogin } from './second-login-api.ts';
import { serviceKeys } from './service-keys-api.ts';
import { ownSessions, userSessions } from './sessions-api.ts';
import { support } from './support-bundle-api.ts';
import { suspensions } from './suspensions-api.ts';
import { triggers } from './triggers-api.ts';
import { uninstalled } from './uninstalled-api.ts';
import { universityBatches, universityImports } from './university-api.ts';
import { universityTypes } from './university-types-api.ts';
import { userRoles } from './user-roles-api.ts';
import { ownTokens, userTokens } from './user-tokens-api.ts';
import { users } from './users-api.ts';

/** Every resource of the API, by the name under which a client has it. */
export const RESOURCES = {
  access,
  activity,
  attention,
  adminKeys,
  adminLogin,
  secondLogin,
  passwordlessLogin,
  ownSecondFactor,
  admins,
  audit,
  commands,
  config,
  doctor,
  databases,
  drift,
  eventSubscriptions,
  events,
  executions,
  frontends,
  gallery,
  graphSchema,
  health,
  hosts,
  idpLogin,
  jobs,
  mail,
  messages,
  messengerAccounts,
  messengerWebhooks,
  outbox,
  ownSessions,
  ownTokens,
  pluginFiles,
  pluginSessions,
  plugins,
  policies,
  relationships,
  roles,
  serviceKeys,
  support,
  suspensions,
  triggers,
  uninstalled,
  universityBatches,
  universityImports,
  universityTypes,
  userFiles,
  userMessengerAccounts,
  userRoles,
  userSessions,
  userTokens,
  users,
} as const satisfies Readonly<Record<string, Resource>>;
