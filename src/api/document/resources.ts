import { drift } from '../access/drift-api.ts';
import { graphSchema } from '../access/graph-schema-api.ts';
import { outbox } from '../access/outbox-api.ts';
import { policies } from '../access/policies-api.ts';
import { relationships } from '../access/relationships-api.ts';
import { roles } from '../access/roles-api.ts';
import { userRoles } from '../access/user-roles-api.ts';
import type { Resource } from '../contract/contract.ts';
import { adminKeys } from '../identity/admin-keys-api.ts';
import { admins } from '../identity/admins-api.ts';
import { adminLogin } from '../identity/auth-api.ts';
import { idpLogin } from '../identity/idp-api.ts';
import { ownSecondFactor } from '../identity/own-second-factor.ts';
import { passwordlessLogin } from '../identity/passwordless-api.ts';
import { secondLogin } from '../identity/second-login-api.ts';
import { serviceKeys } from '../identity/service-keys-api.ts';
import { ownSessions, userSessions } from '../identity/sessions-api.ts';
import { ownTokens, userTokens } from '../identity/user-tokens-api.ts';
import { users } from '../identity/users-api.ts';
import { messages } from '../messages/messages-api.ts';
import { messengerAccounts, userMessengerAccounts } from '../messages/messenger-accounts-api.ts';
import { messengerWebhooks } from '../messages/messengers-api.ts';
import { activity } from '../operation/activity-api.ts';
import { attention } from '../operation/attention-api.ts';
import { audit } from '../operation/audit-api.ts';
import { config } from '../operation/config-api.ts';
import { doctor } from '../operation/doctor-api.ts';
import { eventSubscriptions } from '../operation/event-subscriptions-api.ts';
import { events } from '../operation/events-api.ts';
import { executions } from '../operation/executions-api.ts';
import { health } from '../operation/health-api.ts';
import { hosts } from '../operation/hosts-api.ts';
import { jobs } from '../operation/jobs-api.ts';
import { mail } from '../operation/mail-api.ts';
import { support } from '../operation/support-bundle-api.ts';
import { access } from '../plugins/access-api.ts';
import { commands } from '../plugins/commands-api.ts';
import { databases } from '../plugins/databases-api.ts';
import { userFiles } from '../plugins/files-api.ts';
import { frontends } from '../plugins/frontends-api.ts';
import { gallery } from '../plugins/gallery-api.ts';
import { pluginFiles } from '../plugins/plugin-files-api.ts';
import { pluginSessions } from '../plugins/plugin-session-api.ts';
import { plugins } from '../plugins/plugins-api.ts';
import { suspensions } from '../plugins/suspensions-api.ts';
import { triggers } from '../plugins/triggers-api.ts';
import { uninstalled } from '../plugins/uninstalled-api.ts';
import { universityBatches, universityImports } from '../university/university-api.ts';
import { universityTypes } from '../university/university-types-api.ts';

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
