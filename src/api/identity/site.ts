import { isIP } from 'node:net';
import type { Request } from '../../http/message.ts';
import type { RelyingParty } from '../../identity/passkeys.ts';

/** The site passkeys are for, or why there is none. */
export type Site = { rp: RelyingParty; problem: null } | { rp: null; problem: string };

const hostNameOf = (host: string): string => host.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');

/** The origin or host a browser shows instead of the public one; null where it is that one, or a proxy hides it. */
function shownElsewhere({ host, origin }: URL, headers: Request['headers']): string | null {
  if (headers.origin !== undefined) return headers.origin === origin ? null : headers.origin;
  const isForwarded = headers.forwarded !== undefined || headers['x-forwarded-for'] !== undefined;
  return isForwarded || headers.host === undefined || headers.host === host ? null : headers.host;
}

/**
 * The site of passkeys: the public address, or without one the host name the request was sent to. A page of another site
 * that passes requests on gains nothing: the browser signs the origin it shows.
 *
 * @param publicUrl `http.public_url`; empty for none
 */
export function siteOf(publicUrl: string, { headers }: Request): Site {
  const host = publicUrl === '' ? (headers.host ?? '') : new URL(publicUrl).host;
  const id = hostNameOf(host);
  if (id === '' || isIP(id) !== 0)
    return {
      rp: null,
      problem: `passkeys do not work on an IP address; open this service at a host name, for example http://localhost${/:\d+$/.exec(host)?.[0] ?? ''}/admin/, and set http.public_url`,
    };
  const elsewhere = publicUrl === '' ? null : shownElsewhere(new URL(publicUrl), headers);
  if (elsewhere !== null)
    return { rp: null, problem: `passkeys work at ${publicUrl} (http.public_url); this page is open at ${elsewhere}` };
  const origins = publicUrl === '' ? [`http://${host}`, `https://${host}`] : [new URL(publicUrl).origin];
  return { rp: { id, origins }, problem: null };
}
