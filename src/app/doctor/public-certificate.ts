import tls from 'node:tls';
import { checkTlsFiles, type TlsFiles } from '../../http/tls-files.ts';
import type { Check } from './check.ts';

const PROBE_MS = 5000;
const SOON_DAYS = 14;
const NO_ANSWER = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);
const DAY_MS = 24 * 3_600_000;

/** When the certificate expires that clients get at an address, whether or not they would accept it. */
function expiryOf({ hostname, port }: URL): Promise<Date> {
  return new Promise((resolve, reject) => {
    const host = hostname.replace(/^\[|\]$/g, '');
    const socket = tls.connect({
      host,
      port: port === '' ? 443 : Number(port),
      // An address has no name to ask for (RFC 6066 section 3).
      ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
      rejectUnauthorized: false,
    });
    socket.setTimeout(PROBE_MS, () => socket.destroy(new Error(`no answer within ${PROBE_MS / 1000} s`)));
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      const { valid_to } = socket.getPeerCertificate();
      socket.end();
      resolve(new Date(valid_to));
    });
  });
}

/** Looks how long the certificate of the address users see is valid, which may be a proxy's. */
export async function publicCertificate(base: URL, now = Date.now()): Promise<Omit<Check, 'name'>> {
  let expires: Date;
  try {
    expires = await expiryOf(base);
  } catch (error) {
    // Before the first start, and while the service is down, it says nothing of the certificate.
    if (error instanceof Error && 'code' in error && NO_ANSWER.has(String(error.code)))
      return { state: 'warn', detail: `${base.origin} does not answer (${error.code}): looked at when it does` };
    throw error;
  }
  return validity(`the certificate of ${base.origin}`, expires, 'where TLS ends (a proxy, or http.tls.cert)', now);
}

/** Looks at the files that the service itself is given for TLS. @throws OperatorError when it could not use them */
export const tlsFiles = (files: TlsFiles): Omit<Check, 'name'> =>
  validity(`the certificate ${files.cert}`, checkTlsFiles(files), 'and reload', Date.now());

/** @param how to renew it */
function validity(certificate: string, expires: Date, how: string, now: number): Omit<Check, 'name'> {
  const days = Math.floor((expires.getTime() - now) / DAY_MS);
  const date = expires.toISOString().slice(0, 10);
  if (expires.getTime() <= now)
    return { state: 'failed', detail: `${certificate} expired on ${date}: browsers refuse it. Renew it ${how}` };
  if (days < SOON_DAYS)
    return { state: 'warn', detail: `${certificate} expires on ${date}, in ${days} days: renew it` };
  return { state: 'ok', detail: `${certificate} is valid until ${date}` };
}
