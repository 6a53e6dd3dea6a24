import type { Readable } from 'node:stream';
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import type { Feed } from '../../base/feed.ts';
import { LIMITS } from '../../base/limits.ts';
import { NO_STORE } from '../../http/message.ts';
import { describeAs } from './json-schema.ts';

/** Lists that grow, as a stream of server-sent events for administrators who watch (docs/api.md "Streams"). */

/** Parameter of a stream, for clients that cannot send `Last-Event-ID`. */
export const after = describeAs(z.string(), {
  type: 'integer',
  minimum: 0,
  description: 'Begin behind the entry of this number',
}).optional();

export const STREAM_ABOUT = `A client that comes back sends the header Last-Event-ID, which counts before the parameter after; the first block has the number that the stream begins behind. At most ${LIMITS.eventWatchersMax} streams of a kind are open on a host.`;

type Stream = {
  status: 200;
  headers: Array<[string, string]>;
  body: { endless: true; open(): Promise<Readable> };
};

/**
 * The answer that opens a stream.
 *
 * @param last number of the entry that the client has: its header `Last-Event-ID`, or the parameter `after`
 * @throws ServiceError when it is no number, or when too many streams are open
 */
export function liveStream<Row extends { id: number }, Filter>(
  feed: Feed<Row, Filter>,
  filter: Filter,
  last: string | undefined,
  isStillAllowed: () => Promise<boolean>,
): Stream {
  if (last !== undefined && !/^\d{1,15}$/.test(last))
    throw new ServiceError('validation_failed', 'after must be the number of an entry', {
      errors: [{ pointer: 'query:after', message: 'must be the number of an entry', code: 'malformed' }],
    });
  if (feed.watchers >= LIMITS.eventWatchersMax)
    throw new ServiceError(
      'unavailable',
      `${feed.watchers} streams are open here; ${LIMITS.eventWatchersMax} may be (eventWatchersMax)`,
      { headers: [['Retry-After', '10']] },
    );
  return {
    status: 200,
    headers: [['Content-Type', 'text/event-stream'], NO_STORE, ['X-Accel-Buffering', 'no']],
    body: { endless: true, open: () => feed.watch(filter, last === undefined ? null : Number(last), isStillAllowed) },
  };
}
