import { subscribe } from 'node:diagnostics_channel';
import fs from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';

/** The S3 server in a process of its own: s3-process.ts DIRECTORY PORT BUCKET [CORS-FILE]. Its log goes to stdout, a line a request. */

// It checks signatures over a query spelled with encodeURIComponent, which leaves characters alone that RFC 3986 section 2.2 reserves, and
// that signatures of S3 are made with: a name in a link would not be taken.
const spelled = globalThis.encodeURIComponent;
globalThis.encodeURIComponent = text =>
  spelled(text).replace(/[!'()*]/g, c => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

type Server = { run(): Promise<{ port: number }> };
type ServerClass = new (options: Record<string, unknown>) => Server;

const [directory, port, bucket, cors] = process.argv.slice(2);
const S3rver = createRequire(import.meta.url)('@20minutes/s3rver') as ServerClass;
const server = new S3rver({
  directory,
  port: Number(port),
  address: '127.0.0.1',
  silent: true,
  configureBuckets: [{ name: bucket, configs: cors === undefined ? [] : [fs.readFileSync(cors)] }],
});
subscribe('http.server.request.start', message => {
  const { request } = message as { request: IncomingMessage };
  console.log(`${request.method} ${request.url}`);
});
await server.run();
console.log('listening');
