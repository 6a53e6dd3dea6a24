import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../base/errors.ts';
import { normalizeMimeType } from './file-kind.ts';

/**
 * Addresses at which this host itself takes and gives the bytes of files on disk. The holder of one may do what it was made for, once it
 * is: method, file, end, and for an upload size and type stand in its signature (HMAC-SHA-256).
 */

export const contentPath = (id: string): string => `/api/files/${id}/content`;

export type UploadGrant = { id: string; expires: number; size: number; type: string };
export type DownloadGrant = { id: string; expires: number };

/** Signs and checks addresses; every host of a database that shares `secrets.key` accepts those of the others. */
export class AddressSigner {
  readonly #key: Buffer;

  /** @param secret 32 bytes; a key of its own purpose is derived from it (RFC 5869) */
  constructor(secret: Buffer) {
    this.#key = Buffer.from(hkdfSync('sha256', secret, '', 'plugin-host file addresses', 32));
  }

  #sign(parts: ReadonlyArray<string | number>): string {
    return createHmac('sha256', this.#key).update(JSON.stringify(parts)).digest('base64url');
  }

  #matches(given: string, parts: ReadonlyArray<string | number>): boolean {
    const [a, b] = [Buffer.from(given), Buffer.from(this.#sign(parts))];
    return a.length === b.length && timingSafeEqual(a, b);
  }

  uploadPath(g: UploadGrant): string {
    const query = new URLSearchParams({
      expires: String(g.expires),
      size: String(g.size),
      type: g.type,
      signature: this.#sign(['PUT', g.id, g.expires, g.size, g.type]),
    });
    return `${contentPath(g.id)}?${query}`;
  }

  downloadPath(g: DownloadGrant): string {
    const query = new URLSearchParams({
      expires: String(g.expires),
      signature: this.#sign(['GET', g.id, g.expires]),
    });
    return `${contentPath(g.id)}?${query}`;
  }

  /**
   * @param nowMs the time in ms
   * @throws ServiceError `forbidden` for what was not signed here, `expired` afterwards
   */
  checkUpload(id: string, query: ReadonlyMap<string, string | undefined>, nowMs: number): UploadGrant {
    const grant = {
      id,
      expires: Number(query.get('expires')),
      size: Number(query.get('size')),
      type: normalizeMimeType(query.get('type') ?? ''),
    };
    this.#check(query, ['PUT', id, grant.expires, grant.size, grant.type], nowMs);
    return grant;
  }

  /** Checks the address of a download. */
  checkDownload(id: string, query: ReadonlyMap<string, string | undefined>, nowMs: number): DownloadGrant {
    const grant = { id, expires: Number(query.get('expires')) };
    this.#check(query, ['GET', id, grant.expires], nowMs);
    return grant;
  }

  #check(query: ReadonlyMap<string, string | undefined>, parts: ReadonlyArray<string | number>, nowMs: number): void {
    if (!this.#matches(query.get('signature') ?? '', parts))
      throw new ServiceError(
        'forbidden',
        'this address was not made here, or was changed, or is meant for another method; use it as it was given',
      );
    if (nowMs >= Number(query.get('expires')) * 1000)
      throw new ServiceError('expired', 'this address has expired; ask for a new one');
  }
}
