import { type ServiceError, STATUS_OF, TITLE_OF } from '../errors.ts';
import type { Reply } from '../message.ts';

/**
 * A refusal as RFC 9457 problem details, with the members of decisions.md 2.
 *
 * @param instance path of the request
 */
export function problemReply(error: ServiceError, instance: string, requestId: string): Reply & { body: string } {
  const body = {
    type: `urn:plugin-host:error:${error.code}`,
    title: TITLE_OF[error.code],
    status: STATUS_OF[error.code],
    detail: error.message,
    instance,
    code: error.code,
    request_id: requestId,
    error: error.message,
    errors: error.errors,
    ...error.extra,
  };
  return {
    status: STATUS_OF[error.code],
    headers: [
      ['Content-Type', 'application/problem+json; charset=utf-8'],
      ['Cache-Control', 'no-store'],
      ...error.headers,
    ],
    body: JSON.stringify(body),
  };
}
