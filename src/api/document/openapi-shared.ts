import { type ErrorCode, FIELD_ERROR_CODES, STATUS_OF, TITLE_OF } from '../../base/errors.ts';
import type { Contract, Scheme } from '../contract/contract.ts';
import type { JsonSchema } from '../contract/json-schema.ts';

/** Parts of the OpenAPI document that all operations share: refusals and credentials. */

type Json = Record<string, unknown>;

/** What every request can be refused with, wherever it goes. */
const ALWAYS: readonly ErrorCode[] = ['malformed_request', 'internal', 'draining', 'unavailable'];
const WITH_BODY: readonly ErrorCode[] = ['request_timeout', 'body_too_large', 'unsupported_media_type'];
const OF_ADMINS: readonly ErrorCode[] = ['unauthorized', 'forbidden', 'page_proof_required'];

/** Codes with which the guard of an endpoint refuses. */
function refusalsOfGuard({ guard, path }: Contract): readonly ErrorCode[] {
  switch (guard) {
    case 'none':
      return path.startsWith('/api/admin/') ? ['forbidden'] : [];
    case 'user':
    case 'admin_session':
    case 'admin_confirm':
      return OF_ADMINS;
    case 'admin':
    case 'import_log':
      return [...OF_ADMINS, 'password_change_required', 'second_factor_setup_required'];
    case 'admin_recent':
    case 'import':
      return [
        ...OF_ADMINS,
        'password_change_required',
        'second_factor_setup_required',
        'password_confirmation_required',
      ];
  }
}

/** Every code an endpoint can refuse with. */
export function refusalsOf(contract: Contract): ErrorCode[] {
  const isJson = contract.body != null && !('media' in contract.body);
  const codes = [
    ...ALWAYS,
    ...refusalsOfGuard(contract),
    // There is no own account before there is an administrator.
    ...(contract.key === 'own' ? (['conflict'] as const) : []),
    ...(contract.path.includes('/:') ? (['not_found'] as const) : []),
    ...(contract.body == null ? [] : WITH_BODY),
    // Operations that write can find the disk of the database full.
    ...(contract.method === 'GET' || contract.method === 'OPTIONS' ? [] : (['storage_full'] as const)),
    ...(isJson || contract.query !== undefined ? (['validation_failed'] as const) : []),
    ...(contract.ifMatch === undefined ? [] : (['precondition_failed'] as const)),
    ...(contract.idempotency === undefined
      ? []
      : (['conflict', 'idempotency_key_reused', 'too_many_attempts'] as const)),
    ...(contract.refusals ?? []),
  ];
  return [...new Set(codes)].sort();
}

const SECURITY: Readonly<Record<Contract['guard'], ReadonlyArray<Partial<Record<Scheme, []>>>>> = {
  none: [],
  user: [{ user_session: [] }],
  admin: [{ admin_key: [] }, { admin_session: [] }, { setup_token: [] }],
  admin_recent: [{ admin_key: [] }, { admin_session: [] }, { setup_token: [] }],
  admin_session: [{ admin_session: [] }],
  admin_confirm: [{ admin_session: [] }],
  import: [{ import_key: [] }, { admin_key: [] }, { admin_session: [] }, { setup_token: [] }],
  import_log: [{ import_key: [] }, { admin_key: [] }, { admin_session: [] }, { setup_token: [] }],
};

const BEARER = { type: 'http', scheme: 'bearer' };
export const SECURITY_SCHEMES: Readonly<Record<Scheme | 'service_key', Json>> = {
  user_session: { type: 'apiKey', in: 'cookie', name: 'user_session', description: 'The session of a user.' },
  user_token: { ...BEARER, description: 'A token that a user made for programs (pht_...).' },
  admin_session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'admin_session',
    description:
      'The session of an administrator. A session that a browser began needs the header X-Page-Proof as well.',
  },
  service_key: { ...BEARER, description: 'A service key (phk_...) whose scope names the trigger.' },
  admin_key: { ...BEARER, description: 'An administration key (pha_...). Its scopes say which endpoints it opens.' },
  import_key: { ...BEARER, description: 'The value of admin.api_key.' },
  setup_token: { ...BEARER, description: 'The setup token, until the first administrator exists.' },
  telegram_secret: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Telegram-Bot-Api-Secret-Token',
    description: 'The value of messengers.telegram_secret.',
  },
};

/**
 * What every refusal says, but its code and its status: those differ by schema, and generators of clients cannot join two descriptions of
 * one member.
 */
const PROBLEM_DETAILS: Json = {
  type: 'object',
  description: 'What every refusal says (RFC 9457).',
  required: ['type', 'title', 'detail', 'instance', 'request_id', 'error', 'errors'],
  properties: {
    type: { type: 'string', format: 'uri' },
    title: { type: 'string' },
    detail: { type: 'string' },
    instance: { type: 'string', description: 'Path of the request' },
    request_id: { type: 'string' },
    error: { type: 'string', description: 'The same text as detail' },
    errors: {
      type: 'array',
      description: 'Each place that is wrong; 20 at most',
      items: { $ref: '#/components/schemas/ProblemPlace' },
    },
    errors_total: { type: 'integer', description: 'How many there are, when some are left out' },
  },
};

const PROBLEM_PLACE: Json = {
  type: 'object',
  required: ['pointer', 'message', 'code'],
  properties: {
    pointer: { type: 'string', description: 'JSON pointer (RFC 6901) into the body, or query:name, or path:name' },
    message: { type: 'string' },
    code: { type: 'string', enum: FIELD_ERROR_CODES, description: 'What kind of mistake it is' },
    limit: { type: 'number', description: 'The bound that was passed, in what the code counts' },
  },
};

const DETAILS = { $ref: '#/components/schemas/ProblemDetails' };

/** Schemas that those of all codes share. */
export const PROBLEM_SCHEMAS = { ProblemPlace: PROBLEM_PLACE, ProblemDetails: PROBLEM_DETAILS };

/** Name of the schema of a code. */
export const problemName = (code: ErrorCode): string => `Problem.${code}`;

/** A refusal of one code. @param members what it has beyond those of every refusal; no others are allowed */
export function problemSchema(code: ErrorCode, { properties, required }: JsonSchema): Json {
  const always = { code: { const: code }, status: { const: STATUS_OF[code] } };
  const own = {
    type: 'object',
    required: ['code', 'status', ...(required ?? [])],
    properties: { ...always, ...properties },
  };
  return { allOf: [DETAILS, own], unevaluatedProperties: false, description: TITLE_OF[code] };
}

/** A refusal with one of these codes. */
export function refusalSchema(codes: readonly ErrorCode[]): Json {
  const [first, ...others] = codes.map(code => ({ $ref: `#/components/schemas/${problemName(code)}` }));
  return first !== undefined && others.length === 0 ? first : { anyOf: [first, ...others] };
}

/** Each alternative by which a caller is let in. */
export const securityOf = ({ callers, guard, key }: Contract): ReadonlyArray<Json> =>
  callers?.schemes.map(scheme => ({ [scheme]: [] })) ??
  SECURITY[guard].filter(s => (key !== 'never' && key !== 'own') || !('admin_key' in s));
