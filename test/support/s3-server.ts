import { type ChildProcess, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { openS3Storage, type S3Storage } from '../../src/files/storage-s3.ts';
import { BARE_ENV } from './bare-env.ts';
import { takePort } from './ports.ts';

export type S3Server = {
  origin: string;
  directory: string;
  process: ChildProcess;
  /** Method and path of every request since the last call. */
  requests(): Promise<string[]>;
  /** A client of it, for keys that begin with a prefix. */
  open(prefix: string): S3Storage;
  /** Settings of a service that keeps its files here. */
  env: Record<string, string>;
  stop(): Promise<void>;
};

export const BUCKET = 'files';

/** A client of a server at an address. @param requestMs how long it may take to answer */
export function openBucket(endpoint: string, prefix: string, requestMs?: number): S3Storage {
  return openS3Storage({
    endpoint,
    publicEndpoint: '',
    region: 'us-east-1',
    bucket: BUCKET,
    accessKeyId: 'S3RVER',
    secretAccessKey: 'S3RVER',
    pathStyle: true,
    prefix,
    ...(requestMs === undefined ? {} : { requestMs }),
  });
}

/** What the bucket allows pages of other origins, as docs/operating.md says it. */
const CORS = (origin: string): string => `<CORSConfiguration><CORSRule>
  <AllowedOrigin>${origin}</AllowedOrigin><AllowedMethod>PUT</AllowedMethod><AllowedMethod>GET</AllowedMethod>
  <AllowedHeader>content-type</AllowedHeader><MaxAgeSeconds>3000</MaxAgeSeconds>
</CORSRule></CORSConfiguration>`;

/**
 * A real S3 server on loopback, in a process of its own.
 *
 * @param directory of its own
 * @param corsOrigin whose pages may use the bucket; null for none
 */
export async function startS3Server(directory: string, corsOrigin: string | null = '*'): Promise<S3Server> {
  const port = await takePort();
  fs.mkdirSync(directory, { recursive: true });
  const cors = path.join(directory, '..', `cors-${port}.xml`);
  fs.writeFileSync(cors, corsOrigin === null ? '' : CORS(corsOrigin));
  const child = spawn(
    process.execPath,
    [
      path.join(import.meta.dirname, 's3-process.ts'),
      directory,
      String(port),
      BUCKET,
      ...(corsOrigin === null ? [] : [cors]),
    ],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...BARE_ENV } },
  );
  const lines: string[] = [];
  let marked: ((line: string) => void) | null = null;
  await new Promise<void>((resolve, reject) => {
    const heard = (line: string): void => {
      if (line === 'listening') resolve();
      lines.push(line);
      marked?.(line);
    };
    for (const stream of [child.stdout, child.stderr]) createInterface(stream).on('line', heard);
    child.once('exit', code => reject(new Error(`the S3 server ended with ${code}`)));
  });
  const origin = `http://127.0.0.1:${port}`;
  return {
    origin,
    directory,
    process: child,
    open: prefix => openBucket(origin, prefix),
    async requests() {
      // What was asked before a request of our own has been told before it.
      const mark = `/mark-${performance.now()}`;
      const seen = new Promise<void>(resolve => {
        marked = line => {
          if (line.endsWith(mark)) resolve();
        };
      });
      await (await fetch(origin + mark)).text();
      await seen;
      return lines.splice(0).filter(line => !line.includes('/mark-'));
    },
    env: {
      BOT_S3_BUCKET: BUCKET,
      BOT_S3_ENDPOINT: origin,
      BOT_S3_ACCESS_KEY_ID: 'S3RVER',
      BOT_S3_SECRET_ACCESS_KEY: 'S3RVER',
      BOT_S3_PATH_STYLE: 'true',
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = new Promise(resolve => child.once('exit', resolve));
      child.kill('SIGKILL');
      await gone;
    },
  };
}
