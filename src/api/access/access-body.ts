import { z } from 'zod';
import { LIMITS } from '../../base/limits.ts';
import type { AccessRequest } from '../../plugins/install-access.ts';
import type { SettingsChange } from '../../plugins/trigger-settings.ts';
import { policyText } from './policy-body.ts';

/** What requests say about who may call triggers. */

/** An origin as browsers send it: scheme, host, port, nothing else (RFC 6454 section 6.2). */
const origin = z
  .string()
  .max(300)
  .refine(
    isOrigin,
    'must be an origin like https://app.example.org: scheme, host, optional port, no path, not * or null',
  );

function isOrigin(text: string): boolean {
  return URL.canParse(text) && /^https?:\/\//.test(text) && new URL(text).origin === text;
}

export const origins = z.array(origin).max(LIMITS.originsMax);

const triggerName = z.string().min(1).max(64);

export const acceptPublic = z
  .union([z.boolean(), z.array(triggerName).max(500)])
  .default(false)
  .describe(
    'Confirms that triggers become callable without a login: all that the change opens, or those of these names',
  );

export const acceptWidening = z
  .union([z.boolean(), z.array(z.string().min(1).max(80)).max(500)])
  .default(false)
  .describe(
    'Confirms what else an upgrade widens: all that `widens` in the review names, or of it "frontend", "html" and "policy:NAME" of triggers without what protected those before them',
  );

/** A key that is left out keeps its value; `frontend_origins: null` inherits the plugin's. */
const settings = z.strictObject({
  enabled: z.boolean().optional(),
  allow_user_session: z.boolean().describe('Whether logged-in users may call').optional(),
  allow_service_key: z.boolean().describe('Whether service keys may call').optional(),
  policy_expression: policyText.describe('A policy that callers must meet as well; empty for none').optional(),
  frontend_origins: origins
    .nullable()
    .describe("Origins of pages that may call; null for those of the plugin's own setting")
    .optional(),
  record: z.boolean().describe('Whether executions are recorded, to run them again with plugin replay').optional(),
});
export const settingsBody = settings.extend({ accept_public: acceptPublic });

/** The members of an installation's body that say who may call. */
export const accessMembers = {
  triggers: z.record(triggerName, settings).default({}).describe('Settings by the name of the trigger'),
  accept_suggested_access: z
    .boolean()
    .default(false)
    .describe('New triggers start with the access that the manifest suggests'),
  accept_public: acceptPublic,
  accept_widening: acceptWidening,
};

export const changeOf = (s: z.infer<typeof settings>): SettingsChange => ({
  enabled: s.enabled,
  allowUserSession: s.allow_user_session,
  allowServiceKey: s.allow_service_key,
  policyExpression: s.policy_expression,
  frontendOrigins: s.frontend_origins,
  record: s.record,
});

export const acceptedOf = (given: boolean | readonly string[]): true | readonly string[] =>
  typeof given !== 'boolean' ? given : given || [];

export type AccessMembers = {
  triggers: Record<string, z.infer<typeof settings>>;
  accept_suggested_access: boolean;
  accept_public: z.infer<typeof acceptPublic>;
  accept_widening: z.infer<typeof acceptWidening>;
};

export function accessOf(body: AccessMembers): AccessRequest {
  return {
    triggers: new Map(Object.entries(body.triggers).map(([name, s]) => [name, changeOf(s)])),
    acceptSuggested: body.accept_suggested_access,
    acceptPublic: acceptedOf(body.accept_public),
    acceptWidening: acceptedOf(body.accept_widening),
  };
}

/** A body that only confirms, and may be absent. */
export const confirmBody = z.strictObject({ accept_public: acceptPublic }).prefault({});
