import { z } from 'zod';
import type { ErrorCode } from '../../base/errors.ts';
import { ADMIN_ROLES } from '../../identity/admin-roles.ts';
import { policyPosition } from '../access/policy-body.ts';
import { id } from '../contract/fields.ts';
import { useOptionsShape } from '../identity/passkey-options.ts';
import { finding, widening } from '../plugins/plugin-json.ts';

/**
 * What a refusal says beyond the members of every refusal, by its code: what stands in `extra` of a `ServiceError` is declared here.
 * It comes into the OpenAPI document, to which the tests hold every answer (docs/api.md "Errors").
 */
export const PROBLEM_MEMBERS: Readonly<Partial<Record<ErrorCode, z.ZodObject>>> = {
  unauthorized: z.object({
    attempts_left: z.int().min(0).optional().describe('How many more answers the second half of a login takes'),
  }),
  second_factor_required: z.object({
    continuation: z.string().describe('Names this question in POST /api/admin/auth/login/second-factor'),
    methods: z.array(z.enum(['passkey', 'totp', 'recovery_code'])).describe('What the account has'),
    passkey_options: useOptionsShape
      .nullable()
      .describe(
        'What navigator.credentials.get takes as publicKey, as JSON; null without a passkey for this host name',
      ),
  }),
  forbidden: z.object({
    missing_scopes: z.array(z.string()).optional().describe('Scopes of which an administration key needs one'),
    sufficient_roles: z.array(z.enum(ADMIN_ROLES)).optional().describe('Roles of which an administrator needs one'),
  }),
  password_confirmation_required: z.object({
    confirm: z
      .object({ method: z.enum(['GET', 'POST']), path: z.string() })
      .describe('Where the password is given again; GET: a login at the identity provider'),
  }),
  conflict: z.object({
    id: z.union([id, z.string()]).nullable().optional().describe('What a repeated request had made'),
    reason: z.literal('under_way').optional().describe('What was asked for is being done already'),
  }),
  permissions_not_accepted: z.object({
    new_permissions: z.array(z.string()).describe('Permissions the installed version does not have'),
  }),
  confirmation_required: z.object({
    becomes_public: z
      .array(z.object({ trigger: z.string(), methods: z.array(z.string()), url: z.string() }))
      .describe('What would be open without a login'),
    widens: z.array(widening).describe('What else an installation would widen'),
  }),
  precondition_failed: z.object({
    changed: z.array(z.string()).describe('Members that changed since they were read'),
  }),
  validation_failed: z.object({
    position: policyPosition.optional().describe('The first mistake in a policy'),
  }),
  module_refused: z.object({ findings: z.array(finding) }),
  quota_exceeded: z.object({
    limit: z.string().describe('Name of the limit'),
    limit_value: z.int(),
    used: z.int().optional().describe('How much is used already'),
  }),
  unavailable: z.object({ limit: z.string().optional().describe('Name of the limit that is reached') }),
};
