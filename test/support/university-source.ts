import { createHash } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { University } from './university.ts';

/** What goes wrong with a list, for so many of its next requests; 0 for all. */
export type Fault = { times?: number } & (
  | { kind: 'status'; status: number; retryAfter?: string; location?: string }
  | { kind: 'slow'; ms: number }
  /** Says that it was asked, and answers when the test lets it. */
  | { kind: 'held'; asked(): void; until: Promise<void> }
  /** The connection breaks off in the middle, as its length says. */
  | { kind: 'cut' }
  /** The body ends in the middle of its JSON, and nothing else tells. */
  | { kind: 'truncated' }
  | { kind: 'body'; body: string }
);

export type UniversitySource = {
  url: string;
  /** What it gives; may be changed at any time. */
  university: University;
  faults: Map<string, Fault>;
  /** Records of a page; 0 gives arrays. */
  pageSize: number;
  /** Whether it says ETag, and answers 304 to it. */
  etags: boolean;
  /** Every request, as `<list> <status>`. */
  log: string[];
  close(): Promise<void>;
};

export const SOURCE_TOKEN = 'token-of-the-source';

/** A real server of a university's data (docs/university.md), with faults on demand. */
export async function startUniversitySource(university: University): Promise<UniversitySource> {
  const faults = new Map<string, Fault>();
  const log: string[] = [];
  const self: UniversitySource = { url: '', university, faults, pageSize: 0, etags: true, log, close: async () => {} };

  const answer = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<number> => {
    const url = new URL(request.url ?? '', self.url);
    const name = url.pathname.replace('/api/', '');
    if (request.headers.authorization !== `Bearer ${SOURCE_TOKEN}`) return send(response, 401, '{}');
    const fault = faults.get(name);
    if (fault?.times !== undefined && fault.times > 0 && --fault.times === 0) faults.delete(name);
    if (fault?.kind === 'status')
      return send(response, fault.status, '{}', {
        ...(fault.retryAfter === undefined ? {} : { 'Retry-After': fault.retryAfter }),
        ...(fault.location === undefined ? {} : { Location: fault.location }),
      });
    if (fault?.kind === 'slow') await sleep(fault.ms);
    if (fault?.kind === 'held') {
      fault.asked();
      await fault.until;
    }
    if (!Object.hasOwn(self.university, name)) return send(response, 404, '{}');
    const records = self.university[name as keyof University];
    const at = Number(url.searchParams.get('at') ?? 0);
    const next = `${url.pathname}?at=${at + self.pageSize}`;
    const text =
      fault?.kind === 'body'
        ? fault.body
        : self.pageSize === 0
          ? JSON.stringify(records)
          : JSON.stringify({
              items: records.slice(at, at + self.pageSize),
              next: at + self.pageSize < records.length ? next : null,
            });
    const etag = `"${createHash('sha256').update(text).digest('hex').slice(0, 16)}"`;
    if (self.etags && request.headers['if-none-match'] === etag) return send(response, 304, '');
    const headers: Record<string, string> = self.etags ? { ETag: etag } : {};
    if (fault?.kind === 'truncated') return send(response, 200, text.slice(0, text.length / 2), headers);
    if (fault?.kind !== 'cut') return send(response, 200, text, headers);
    const bytes = Buffer.from(text);
    response.writeHead(200, { ...headers, 'Content-Length': bytes.length, 'Content-Type': 'application/json' });
    response.write(bytes.subarray(0, bytes.length / 2));
    setTimeout(() => response.destroy(), 20);
    return 200;
  };
  const send = (
    response: http.ServerResponse,
    status: number,
    body: string,
    headers: Record<string, string> = {},
  ): number => {
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
    response.end(body);
    return status;
  };

  const server = http.createServer((request, response) => {
    const name = new URL(request.url ?? '', 'http://x').pathname.replace('/api/', '');
    answer(request, response).then(
      status => log.push(`${name} ${status}`),
      () => response.destroy(),
    );
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  self.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`;
  self.close = async () => {
    server.closeAllConnections();
    await new Promise(resolve => server.close(resolve));
  };
  return self;
}
