import { createPrivateKey, X509Certificate } from 'node:crypto';
import fs from 'node:fs';
import tls from 'node:tls';
import { messageOf, OperatorError } from '../base/errors.ts';

/** Files of a certificate with its chain and of its private key, both PEM (`http.tls.*`). */
export type TlsFiles = { cert: string; key: string };

function read(key: string, file: string): Buffer {
  try {
    return fs.readFileSync(file);
  } catch (error) {
    throw new OperatorError(`${key}: cannot read ${file}: ${messageOf(error)}`);
  }
}

/**
 * Looks whether the files can be used before the HTTP library does, which says nothing when they cannot.
 *
 * @returns when the certificate expires
 * @throws OperatorError that names the key and what is wrong
 */
export function checkTlsFiles(files: TlsFiles): Date {
  const cert = read('http.tls.cert', files.cert);
  const key = read('http.tls.key', files.key);
  let first: X509Certificate;
  try {
    if (!cert.includes('-----BEGIN CERTIFICATE-----')) throw new Error('it has no line BEGIN CERTIFICATE');
    first = new X509Certificate(cert);
  } catch (error) {
    throw new OperatorError(`http.tls.cert: ${files.cert} is not a certificate in PEM: ${messageOf(error)}`);
  }
  try {
    // The second takes a key of another type than the certificate's.
    if (!first.checkPrivateKey(createPrivateKey(key))) throw new Error('it belongs to another certificate');
    tls.createSecureContext({ cert, key });
  } catch (error) {
    throw new OperatorError(
      `http.tls.key: ${files.key} is not the private key of ${files.cert} in PEM, without a passphrase: ${messageOf(error)}`,
    );
  }
  return new Date(first.validTo);
}
