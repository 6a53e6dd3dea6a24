import crypto from 'node:crypto';
import fs from 'node:fs';
import { type Config, ConfigError } from '../config/load.ts';
import { GraphStore } from './graph-store.ts';

/**
 * Makes a client of the store that `spicedb.endpoint` names.
 *
 * @returns null when it is empty: the embedded store is used
 * @throws ConfigError when `spicedb.ca_file` is not a certificate
 */
export function remoteStore(config: Config): GraphStore | null {
  const v = config.values;
  if (v['spicedb.endpoint'] === '') return null;
  const ca = v['spicedb.ca_file'] === '' ? null : readCertificate(v['spicedb.ca_file']);
  return new GraphStore({ endpoint: v['spicedb.endpoint'], token: v['spicedb.token'], tls: v['spicedb.tls'], ca });
}

function readCertificate(file: string): Buffer {
  try {
    const pem = fs.readFileSync(file);
    // Checked here, because the client would only report that it cannot connect.
    new crypto.X509Certificate(pem);
    return pem;
  } catch (cause) {
    throw new ConfigError(
      `spicedb.ca_file: ${file} cannot be used (${cause instanceof Error ? cause.message : String(cause)}); it must be a certificate in PEM form`,
      { cause },
    );
  }
}
