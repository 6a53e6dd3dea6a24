import { z } from 'zod';
import { creationResponse } from '../../identity/passkeys.ts';
import { resource } from '../contract/contract.ts';
import { id, time } from '../contract/fields.ts';
import { idParam } from '../contract/params.ts';
import { noParameters } from '../contract/query.ts';
import { creationOptionsShape } from './passkey-options.ts';

const path = '/api/admin/auth';
const OWN = { guard: 'admin_recent', key: 'own' } as const;
const continuation = z.string().min(1).max(200).describe('The value of the answer that began it');
const begun = z.string().describe('Names this enrolment in its second half; valid for five minutes');
const codes = z.array(z.string());
const firstCodes = codes.nullable().describe('With the first second factor: codes to keep, shown once');

const passkey = z
  .object({
    id,
    name: z.string(),
    host: z.string().describe('The host name it was made for, the only one it works on'),
    is_usable: z.boolean().describe('Whether that is the host name of this request'),
    created_at: time,
    last_used_at: time.nullable(),
  })
  .meta({ id: 'Passkey' });

const state = z
  .object({
    required: z.boolean().describe('Whether administrators need a second factor (admin.second_factor)'),
    passkeys: z.array(passkey),
    passkey_problem: z.string().nullable().describe('Why passkeys do not work at this address'),
    totp_since: time.nullable().describe('Since when codes of an authenticator app count'),
    recovery_codes: z.int().min(0).describe('How many are left'),
  })
  .meta({ id: 'SecondFactor' });

/** The second factor of the administrator who asks (docs/identity.md "Second factor"). */
export const ownSecondFactor = resource(
  'Own second factor',
  'Passkeys, authenticator app and recovery codes of the administrator who asks.',
  {
    read: {
      method: 'GET',
      path: `${path}/second-factor`,
      guard: 'admin',
      key: 'own',
      summary: 'Read your second factors',
      query: noParameters,
      replies: { 200: state },
    },
    beginPasskey: {
      method: 'POST',
      path: `${path}/passkeys/begin`,
      ...OWN,
      summary: 'Begin to add a passkey',
      replies: {
        200: z.object({
          continuation: begun,
          options: creationOptionsShape.describe('What navigator.credentials.create takes as publicKey, as JSON'),
        }),
      },
      refusals: ['conflict'],
    },
    addPasskey: {
      method: 'POST',
      path: `${path}/passkeys`,
      ...OWN,
      summary: 'Add a passkey',
      body: z.strictObject({
        continuation,
        name: z.string().trim().min(1).max(100),
        response: creationResponse.describe('What navigator.credentials.create answered, as JSON'),
      }),
      replies: { 201: z.object({ passkey, recovery_codes: firstCodes }) },
      refusals: ['conflict'],
      example: {
        body: {
          continuation: '2Ef1',
          name: 'Laptop',
          response: {
            ...{ id: 'kYgL', rawId: 'kYgL', type: 'public-key', clientExtensionResults: {} },
            response: { clientDataJSON: 'eyJ0', attestationObject: 'o2Nm' },
          },
        },
      },
    },
    removePasskey: {
      method: 'DELETE',
      path: `${path}/passkeys/:passkey`,
      ...OWN,
      summary: 'Remove a passkey',
      params: { passkey: idParam('passkey') },
      replies: { 204: null },
      refusals: ['conflict'],
    },
    beginTotp: {
      method: 'POST',
      path: `${path}/totp/begin`,
      ...OWN,
      summary: 'Begin to add an authenticator app',
      replies: {
        200: z.object({
          continuation: begun,
          secret: z.string().describe('The secret to type, base32'),
          uri: z.string().describe('The same as an otpauth: address, for a QR code'),
        }),
      },
    },
    setTotp: {
      method: 'PUT',
      path: `${path}/totp`,
      ...OWN,
      summary: 'Add an authenticator app',
      description: 'Takes the place of another one.',
      body: z.strictObject({ continuation, code: z.string().min(1).max(40).describe('Six digits of the app') }),
      replies: { 200: z.object({ totp_since: time, recovery_codes: firstCodes }) },
      refusals: ['conflict'],
      example: { body: { continuation: '2Ef1...', code: '492039' } },
    },
    removeTotp: {
      method: 'DELETE',
      path: `${path}/totp`,
      ...OWN,
      summary: 'Remove the authenticator app',
      replies: { 204: null },
      refusals: ['conflict', 'not_found'],
    },
    renewRecoveryCodes: {
      method: 'POST',
      path: `${path}/recovery-codes`,
      ...OWN,
      summary: 'Make new recovery codes',
      description: 'Those that were left stop working.',
      replies: { 200: z.object({ recovery_codes: codes }) },
      refusals: ['conflict'],
    },
  },
);
