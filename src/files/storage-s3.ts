import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import {
  CopyObjectCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { ServiceError } from '../base/errors.ts';
import { dispositionOf } from './file-headers.ts';
import { normalizeMimeType } from './file-kind.ts';
import type { FileStorage, StoredObject } from './file-storage.ts';
import { S3Reader, storeError } from './s3-reader.ts';

export type S3Options = {
  /** Address of the store; empty for Amazon's own. */
  endpoint: string;
  /** Address browsers reach it at, when that is another one. */
  publicEndpoint: string;
  region: string;
  bucket: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** `host/bucket/key` instead of `bucket.host/key`. */
  pathStyle: boolean;
  /** Prefix of every key, this installation's own. */
  prefix: string;
  /** How long the store may take to answer anything but a copy. */
  requestMs?: number;
};

export type S3Storage = FileStorage & {
  /** Origin at which browsers upload and download. */
  readonly publicOrigin: string;
  /** Asks for an object that may not be there. @throws ServiceError when the store does not answer */
  ping(signal: AbortSignal): Promise<void>;
  /** Writes, reads and removes an object of its own. @throws ServiceError with what the store said */
  probe(): Promise<void>;
  close(): void;
};

const CONNECT_MS = 3000;
const REQUEST_MS = 15_000;
const COPY_MS = 10 * 60_000;
const PROBE_KEY = 'probe';
const PRECONDITION_FAILED = 412;

function statusOf(error: unknown): number {
  if (!(error instanceof Error) || !('$metadata' in error)) return 0;
  const { $metadata } = error;
  return typeof $metadata === 'object' && $metadata !== null && 'httpStatusCode' in $metadata
    ? Number($metadata.httpStatusCode)
    : 0;
}

/** The error of the store, as a refusal; null when it said that there is no such object. */
async function ask<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (statusOf(error) === 404) return null;
    throw storeError(error);
  }
}

/** Files in an S3-compatible store: browsers send and get their bytes there, and not through this host. */
export function openS3Storage(o: S3Options): S3Storage {
  const { bucket } = o;
  const client = (endpoint: string, requestMs: number): S3Client => {
    const made = new S3Client({
      region: o.region,
      ...(endpoint === '' ? {} : { endpoint }),
      forcePathStyle: o.pathStyle,
      credentials: { accessKeyId: o.accessKeyId, secretAccessKey: o.secretAccessKey },
      requestHandler: {
        connectionTimeout: CONNECT_MS,
        requestTimeout: requestMs,
        throwOnRequestTimeout: true,
        socketTimeout: requestMs,
      },
      // Stores other than Amazon's do not know the newer checksums; what is signed is checked anyway.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    });
    // The bucket itself is asked for as `/bucket`, not `/bucket/`: the same to Amazon, while some stores leave the slash out of what they
    // check the signature of.
    made.middlewareStack.add(
      next => args => {
        const { request } = args;
        if (typeof request === 'object' && request !== null && 'path' in request && typeof request.path === 'string')
          request.path = request.path.replace(/(?<=.)\/$/, '');
        return next(args);
      },
      { step: 'build', name: 'withoutLastSlash' },
    );
    return made;
  };
  const own = client(o.endpoint, o.requestMs ?? REQUEST_MS);
  // The store copies up to 5 GiB before it answers.
  const copying = client(o.endpoint, COPY_MS);
  const signing = o.publicEndpoint === '' ? own : client(o.publicEndpoint, o.requestMs ?? REQUEST_MS);
  const uploaded = (id: string): string => `${o.prefix}uploads/${id}`;
  /** The final place of one attempt; its name begins the digest, the object's ETag ends it. */
  const final = (id: string, digest: string): string => `${o.prefix}ready/${id}-${digest.split(' ')[0]}`;
  const etagOf = (digest: string | null): string | undefined => digest?.split(' ')[1];

  const head = (Key: string) => ask(own.send(new HeadObjectCommand({ Bucket: bucket, Key })));
  const remove = async (Key: string): Promise<void> => {
    await ask(own.send(new DeleteObjectCommand({ Bucket: bucket, Key })));
  };

  async function* list(): AsyncGenerator<StoredObject[]> {
    let token: string | undefined;
    do {
      const page = await ask(
        own.send(
          new ListObjectsV2Command({
            Bucket: bucket,
            Prefix: o.prefix,
            ...(token === undefined ? {} : { ContinuationToken: token }),
          }),
        ),
      );
      if (page === null) throw new ServiceError('unavailable', `there is no bucket "${bucket}"`);
      yield (page.Contents ?? []).flatMap(({ Key, LastModified }) => {
        const [place, name] = (Key ?? '').slice(o.prefix.length).split('/');
        if (Key === undefined || name === undefined || LastModified === undefined) return [];
        const [id = '', version = ''] = name.split('-');
        return [{ id, key: Key, uploaded: place === 'uploads', version, modifiedAt: LastModified }];
      });
      token = page.IsTruncated === true ? page.NextContinuationToken : undefined;
    } while (token !== undefined);
  }

  return {
    kind: 's3',
    publicOrigin: new URL(o.publicEndpoint || o.endpoint || `https://${bucket}.s3.${o.region}.amazonaws.com`).origin,
    async uploadTarget(file, expiresAt) {
      const command = new PutObjectCommand({
        Bucket: bucket,
        Key: uploaded(file.id),
        ContentType: file.mimeType,
        ContentLength: file.size,
      });
      const url = await getSignedUrl(signing, command, {
        expiresIn: Math.max(1, Math.floor((expiresAt.getTime() - Date.now()) / 1000)),
        // Size and type stand in the signature: the store takes nothing else. A browser states the length by itself.
        signableHeaders: new Set(['host', 'content-type', 'content-length']),
      });
      return { url, method: 'PUT', headers: { 'Content-Type': file.mimeType } };
    },
    async finish(file) {
      const found = await head(uploaded(file.id));
      if (found === null) return { kind: 'missing' };
      if (found.ContentLength !== file.size)
        return { kind: 'different', what: `has ${found.ContentLength} bytes, and ${file.size} were announced` };
      if (normalizeMimeType(found.ContentType ?? '') !== file.mimeType)
        return { kind: 'different', what: `is of type ${found.ContentType}, and ${file.mimeType} was announced` };
      const attempt = randomBytes(8).toString('hex');
      const copy = copying.send(
        new CopyObjectCommand({
          Bucket: bucket,
          Key: final(file.id, attempt),
          CopySource: `${bucket}/${uploaded(file.id)}`,
          CopySourceIfMatch: found.ETag,
        }),
      );
      const copied = await ask(
        copy.catch((error: unknown) => {
          if (statusOf(error) === PRECONDITION_FAILED) return 'changed' as const;
          throw error;
        }),
      );
      if (copied === null) return { kind: 'missing' };
      // The object in its final place is looked at once more: a store may not know the condition above.
      const moved = await head(final(file.id, attempt));
      if (copied === 'changed' || moved?.ETag === undefined || moved.ContentLength !== file.size)
        return { kind: 'different', what: 'changed while it was taken over' };
      return { kind: 'ready', digest: `${attempt} ${moved.ETag}` };
    },
    async settle(file) {
      await remove(uploaded(file.id));
    },
    async discard(id, digest) {
      await remove(final(id, digest));
    },
    async write(file, bytes) {
      const attempt = randomBytes(8).toString('hex');
      const done = await ask(
        own.send(
          new PutObjectCommand({
            Bucket: bucket,
            Key: final(file.id, attempt),
            Body: bytes,
            ContentType: file.mimeType,
            ContentLength: bytes.length,
          }),
        ),
      );
      if (done?.ETag === undefined) throw new ServiceError('unavailable', `there is no bucket "${bucket}"`);
      return `${attempt} ${done.ETag}`;
    },
    openReader: file =>
      new S3Reader(file, async (from, to, abortSignal) => {
        const answer = await ask(
          own.send(
            new GetObjectCommand({
              Bucket: bucket,
              Key: final(file.id, file.digest ?? ''),
              Range: `bytes=${from}-${to}`,
              IfMatch: etagOf(file.digest),
            }),
            { abortSignal },
          ),
        );
        if (answer === null) throw new ServiceError('not_found', 'the bytes of the file are gone');
        if (!(answer.Body instanceof Readable)) throw new Error('the store answered without a body');
        return answer.Body;
      }),
    async downloadUrl(file, expiresAt) {
      const command = new GetObjectCommand({
        Bucket: bucket,
        Key: final(file.id, file.digest ?? ''),
        ResponseContentDisposition: dispositionOf(file),
        ResponseContentType: file.mimeType,
      });
      return await getSignedUrl(signing, command, {
        expiresIn: Math.max(1, Math.floor((expiresAt.getTime() - Date.now()) / 1000)),
      });
    },
    async remove({ digest, id }) {
      await remove(uploaded(id));
      if (digest !== null) await remove(final(id, digest));
    },
    list,
    removeObject: remove,
    async ping(signal) {
      const command = new HeadObjectCommand({ Bucket: bucket, Key: `${o.prefix}${PROBE_KEY}` });
      try {
        await own.send(command, { abortSignal: signal });
      } catch (error) {
        const status = statusOf(error);
        if (status === 0 || status >= 500) throw storeError(error);
      }
    },
    async probe() {
      const Key = `${o.prefix}${PROBE_KEY}`;
      const put = await ask(own.send(new PutObjectCommand({ Bucket: bucket, Key, Body: Buffer.from('probe') })));
      if (put === null) throw new ServiceError('unavailable', `there is no bucket "${bucket}"`);
      const got = await ask(own.send(new GetObjectCommand({ Bucket: bucket, Key })));
      if ((await got?.Body?.transformToString()) !== 'probe')
        throw new ServiceError('unavailable', 'the store gives back something else than was written');
      await remove(Key);
    },
    close() {
      own.destroy();
      copying.destroy();
      if (signing !== own) signing.destroy();
    },
  };
}
