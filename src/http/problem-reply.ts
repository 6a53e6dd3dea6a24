import { type ServiceError, STATUS_OF, TITLE_OF } from '../base/errors.ts';
import { REQUEST_LIMITS } from '../base/request-limits.ts';
import { NO_CONTENT_POLICY, NO_STORE, type Reply } from './message.ts';

/** A text of a refusal; what was sent and is quoted in it may be long. */
const cut = (text: string, charsMax: number): string =>
  text.length <= charsMax ? text : `${text.slice(0, charsMax)}... (${text.length} characters)`;

/**
 * A refusal as RFC 9457 problem details, with the members of docs/api.md "Errors".
 *
 * @param instance path of the request
 */
export function problemReply(error: ServiceError, instance: string, requestId: string): Reply & { body: string } {
  const detail = cut(error.message, REQUEST_LIMITS.errorDetailCharsMax);
  const body = {
    type: `urn:plugin-host:error:${error.code}`,
    title: TITLE_OF[error.code],
    status: STATUS_OF[error.code],
    detail,
    instance,
    code: error.code,
    request_id: requestId,
    error: detail,
    errors: error.errors.slice(0, REQUEST_LIMITS.errorsToldMax).map(e => ({
      pointer: cut(e.pointer, REQUEST_LIMITS.errorTextCharsMax),
      message: cut(e.message, REQUEST_LIMITS.errorTextCharsMax),
      code: e.code ?? 'refused',
      ...(e.limit === undefined ? {} : { limit: e.limit }),
    })),
    // Told only when some are left out.
    ...(error.errors.length > REQUEST_LIMITS.errorsToldMax ? { errors_total: error.errors.length } : {}),
    ...error.extra,
  };
  return {
    status: STATUS_OF[error.code],
    headers: [
      ['Content-Type', 'application/problem+json; charset=utf-8'],
      NO_STORE,
      NO_CONTENT_POLICY,
      ...error.headers,
    ],
    body: JSON.stringify(body),
  };
}
