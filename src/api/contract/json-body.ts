import { parseBoundedJson } from '../../base/bounded-json.ts';
import { messageOf, ServiceError } from '../../base/errors.ts';

/**
 * The value of a body.
 *
 * @throws ServiceError `malformed_request` when it is not JSON in UTF-8, or larger inside than is read
 */
export function parseJsonBody(bytes: Uint8Array): unknown {
  try {
    return parseBoundedJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    const why = error instanceof TypeError ? 'it is not UTF-8' : messageOf(error);
    throw new ServiceError('malformed_request', `the body is not JSON that is read here: ${why}`);
  }
}
