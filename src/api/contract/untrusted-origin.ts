import { ServiceError } from '../../base/errors.ts';
import { isBrowser, type Request } from '../../http/message.ts';

/**
 * Why administrators cannot log in: on an origin browsers do not trust (http beyond loopback) they send no `Sec-Fetch-*` and do
 * not separate windows, so that a page of a plugin could read the administration's.
 */
export function untrustedOrigin(): ServiceError {
  return new ServiceError(
    'forbidden',
    'administrators cannot log in from a browser here: browsers protect the administration only over https or at http://localhost; open this service through TLS (http.public_url), or on its own machine as http://localhost',
  );
}

/** @throws ServiceError `forbidden` for a browser on such an origin: it shows itself by `Origin` alone */
export function refuseUntrustedOrigin({ headers }: Request): void {
  if (isBrowser(headers) && headers['sec-fetch-site'] === undefined) throw untrustedOrigin();
}
