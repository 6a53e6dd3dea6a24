import { inspect } from 'node:util';

/**
 * The closed list of refusals and their HTTP statuses (docs/api.md "Errors"). A missing status is a compile error.
 */
export const STATUS_OF = {
  malformed_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  conflict: 409,
  not_uploaded: 409,
  upload_mismatch: 409,
  expired: 410,
  quota_exceeded: 413,
  range_not_satisfiable: 416,
  second_factor_required: 401,
  second_factor_setup_required: 403,
  password_change_required: 403,
  password_confirmation_required: 403,
  page_proof_required: 403,
  too_many_attempts: 429,
  permissions_not_accepted: 409,
  confirmation_required: 409,
  body_too_large: 413,
  unsupported_media_type: 415,
  precondition_failed: 412,
  validation_failed: 422,
  idempotency_key_reused: 422,
  module_refused: 422,
  frontend_refused: 422,
  internal: 500,
  plugin_trapped: 502,
  plugin_error: 502,
  plugin_response_invalid: 502,
  plugin_quota_exceeded: 502,
  no_slot: 503,
  memory_budget: 503,
  quarantined: 503,
  draining: 503,
  unavailable: 503,
  deadline_exceeded: 504,
  storage_full: 507,
} as const satisfies Record<string, number>;

export type ErrorCode = keyof typeof STATUS_OF;

/** Short title of each code, constant for the code as RFC 9457 section 3.1.3 asks. */
export const TITLE_OF: Record<ErrorCode, string> = {
  malformed_request: 'Malformed request',
  unauthorized: 'Authentication required',
  forbidden: 'Access denied',
  not_found: 'Not found',
  method_not_allowed: 'Method not allowed',
  request_timeout: 'The request took too long to arrive',
  conflict: 'Conflict with the current state',
  not_uploaded: 'Not uploaded yet',
  upload_mismatch: 'Something else was uploaded',
  expired: 'Expired',
  quota_exceeded: 'Quota exceeded',
  range_not_satisfiable: 'Range not satisfiable',
  second_factor_required: 'A second factor is needed',
  second_factor_setup_required: 'A second factor must be added first',
  password_change_required: 'The temporary password must be changed first',
  password_confirmation_required: 'The password must be given again',
  page_proof_required: 'The request does not come from a page of this service',
  too_many_attempts: 'Too many attempts',
  permissions_not_accepted: 'New permissions must be accepted',
  confirmation_required: 'Confirmation required',
  body_too_large: 'Body too large',
  unsupported_media_type: 'Unsupported media type',
  precondition_failed: 'Changed since it was read',
  validation_failed: 'Validation failed',
  idempotency_key_reused: 'The Idempotency-Key belongs to another request',
  module_refused: 'Module refused',
  frontend_refused: 'Frontend refused',
  internal: 'Internal error',
  plugin_trapped: 'The plugin crashed',
  plugin_error: 'The plugin reported an error',
  plugin_response_invalid: 'The plugin gave an invalid response',
  plugin_quota_exceeded: 'The plugin exceeded a quota',
  no_slot: 'No execution slot in time',
  memory_budget: 'Memory budget of the host used up',
  quarantined: 'Trigger suspended',
  draining: 'Shutting down',
  unavailable: 'Temporarily unavailable',
  deadline_exceeded: 'Execution time exceeded',
  storage_full: 'Storage full',
};

/** What kind of mistake it is, from a closed list, so that clients can say it in words of their own. */
export const FIELD_ERROR_CODES = [
  'missing',
  'wrong_type',
  'too_short',
  'too_long',
  'too_few_bytes',
  'too_many_bytes',
  'list_too_short',
  'list_too_long',
  'too_small',
  'too_large',
  'not_one_of',
  'malformed',
  'unknown_field',
  'not_found',
  'taken',
  'in_use',
  'does_not_fit',
  'too_common',
  'wrong_secret',
  'unchanged',
  'not_public',
  'not_accepted',
  'refused',
] as const;
export type FieldErrorCode = (typeof FIELD_ERROR_CODES)[number];

/** A mistake in the input: where (a JSON pointer, RFC 6901, into the body, or `query:name`) and what would be right. */
export type FieldError = {
  pointer: string;
  message: string;
  /** Left out: `refused`. */
  code?: FieldErrorCode;
  /** The bound that was passed: characters, bytes, entries or a number, as the code says. */
  limit?: number;
};

export type ServiceErrorOptions = {
  /** Mistakes in the input. */
  errors?: FieldError[];
  /** Extra response headers, for example `Allow` or `Retry-After`. */
  headers?: Array<[string, string]>;
  /** Members added to the problem body, for example the list of new permissions. */
  extra?: Record<string, unknown>;
  cause?: unknown;
};

/** A refusal that the caller may see. `message` is the `detail` of the problem body. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly errors: FieldError[];
  readonly headers: Array<[string, string]>;
  readonly extra: Record<string, unknown>;

  constructor(code: ErrorCode, detail: string, options: ServiceErrorOptions = {}) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ServiceError';
    this.code = code;
    this.errors = options.errors ?? [];
    this.headers = options.headers ?? [];
    this.extra = options.extra ?? {};
  }

  /** The same refusal with more headers. */
  with(headers: ReadonlyArray<readonly [string, string]>): ServiceError {
    const { cause, code, errors, extra, message } = this;
    const all = [...this.headers, ...headers.map(([name, value]): [string, string] => [name, value])];
    return new ServiceError(code, message, { errors, extra, headers: all, cause });
  }
}

/** A failure whose text tells the operator what to do: it is shown alone, without a stack. */
export class OperatorError extends Error {
  override readonly name: string = 'OperatorError';
  /** With which a command ends. */
  readonly exitCode: number = 1;
  /** Members for programs, in addition to the text. */
  readonly facts: Readonly<Record<string, unknown>> = {};
}

/** A command line that cannot be understood: the command ends with 2 instead of 1. */
export class UsageError extends OperatorError {
  override readonly name = 'UsageError';
  override readonly exitCode = 2;
}

/** A body that is larger than a limit, by its name and value. */
export function tooLarge(bytesMax: number, limitName: string): ServiceError {
  return new ServiceError('body_too_large', `the body is larger than ${limitName} (${bytesMax} bytes)`);
}

/** This host may have missed changes made on other hosts, so it does not decide access that they could have revoked. */
export function notCurrent(headers: ReadonlyArray<readonly [string, string]> = []): ServiceError {
  return new ServiceError(
    'unavailable',
    'this host cannot hear changes made on other hosts right now: it reconnects to the database and reads everything again',
    { headers: [['Retry-After', '1'], ...headers.map(([n, v]): [string, string] => [n, v])] },
  );
}

/**
 * The text of a thrown value, for logs: libraries also throw objects that are not errors, and errors without a text.
 */
/** The name of an error where its text must not stand. */
export const errorCodeOf = (error: unknown): ErrorCode => (error instanceof ServiceError ? error.code : 'internal');

export function messageOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return String(error);
  if ('message' in error && typeof error.message === 'string' && error.message !== '') return error.message;
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(messageOf).join('; ');
  if ('code' in error && (typeof error.code === 'string' || typeof error.code === 'number'))
    return `code ${error.code}`;
  if (error instanceof Error) return error.name;
  return inspect(error, { breakLength: Number.POSITIVE_INFINITY, depth: 3 });
}
