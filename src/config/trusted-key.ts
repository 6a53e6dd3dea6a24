/** A key whose signatures of modules count (`plugins.trusted_keys`). */
export type TrustedKey = { name: string; id: string; key: Uint8Array };

const PUBLIC_BYTES = 42;

/** Ids of keys as minisign prints them: the number, its highest digit first. */
export const keyIdText = (id: Uint8Array): string => Buffer.from(id).reverse().toString('hex').toUpperCase();

/**
 * A key of the configuration: `name=RWQ...`, the second line of a public key file of minisign
 * (https://jedisct1.github.io/minisign/#public-key-format).
 *
 * @returns undefined for what is none
 */
export function parseTrustedKey(entry: string): TrustedKey | undefined {
  const [, name = '', text = ''] = /^([^=,\s][^=,]{0,63})=(\S+)$/.exec(entry) ?? [];
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length !== PUBLIC_BYTES || bytes.toString('latin1', 0, 2) !== 'Ed') return undefined;
  return { name, id: keyIdText(bytes.subarray(2, 10)), key: bytes.subarray(10) };
}
