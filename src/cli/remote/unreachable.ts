import { messageOf } from '../../base/errors.ts';
import type { ServiceAddress } from './service-address.ts';

/** What helps, by the code of the system or of OpenSSL. */
const HELP: ReadonlyArray<readonly [codes: RegExp, help: string]> = [
  [/^ECONNREFUSED$/, 'nothing listens there; does the service run?'],
  [/^(ENOTFOUND|EAI_AGAIN)$/, 'no host of this name is found'],
  [/^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)$/, 'no TLS is spoken there; is it http://?'],
  [
    /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+)$/,
    'this machine does not know who signed the certificate; name the file of that authority with NODE_EXTRA_CA_CERTS',
  ],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'the certificate is for another name; give the address that it is for'],
  [/^CERT_HAS_EXPIRED$/, 'the certificate has expired; renew it where TLS ends (a proxy, or http.tls.cert)'],
];

const causeOf = (error: unknown): unknown =>
  error instanceof Error && error.cause !== undefined ? error.cause : error;

function codeOf(error: unknown): string {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** Why a service cannot be reached, in one line: which address was tried, where it came from, and what helps. */
export function unreachable(error: unknown, { from, url }: ServiceAddress): string {
  const cause = causeOf(error);
  const code = codeOf(cause);
  const found = HELP.find(([codes]) => codes.test(code))?.[1];
  const isCut = ['ECONNRESET', 'UND_ERR_SOCKET', 'EPIPE'].includes(code);
  if (messageOf(cause) === 'bad port')
    return `the service at ${url} (${from}) cannot be reached: this port is one of another protocol, which HTTP never uses.`;
  const help = found ?? (isCut && url.startsWith('http:') ? 'the connection was closed; is it https://?' : '');
  // OpenSSL's own words are of no use to an operator.
  const [first = ''] = code.startsWith('ERR_SSL') && help !== '' ? [] : messageOf(cause).split('\n');
  const why = [first.replace(/[:\s]+$/, ''), help].filter(part => part !== '').join(': ');
  return `the service at ${url} (${from}) cannot be reached: ${why}${why.endsWith('?') ? '' : '.'}`;
}
