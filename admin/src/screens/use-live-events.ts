import { useEffect, useState } from 'react';
import { followEvents, type Streamed } from '../api/event-stream.ts';
import { ApiProblem } from '../api/problem.ts';
import type { ShownEvent } from './event-details.tsx';

/** A list that grows for hours must not fill the memory of the page. */
const KEPT = 200;
const AGAIN_MS = 2000;

export type Live = {
  state: 'connecting' | 'open' | 'lost';
  events: readonly ShownEvent[];
  /** Why the service refuses the stream; it is tried again all the same. */
  error: ApiProblem | null;
};

const NOTHING: Live = { state: 'connecting', events: [], error: null };

/** A pause that ends early when `signal` does. */
const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });

/**
 * Events as they are published, newest first. A stream that ends is opened again behind the last event that came, so none is
 * missed.
 *
 * @param query filters as the API takes them; null: nothing is followed
 */
export function useLiveEvents(query: string | null): Live {
  const [live, setLive] = useState(NOTHING);
  useEffect(() => {
    setLive(NOTHING);
    if (query === null) return;
    const end = new AbortController();
    let last = '';
    const follow = async (): Promise<void> => {
      while (!end.signal.aborted) {
        let waitMs = AGAIN_MS;
        try {
          await followEvents(`/api/admin/events/stream?${query}`, last, end.signal, {
            open: () => setLive(l => ({ ...l, state: 'open', error: null })),
            event(streamed) {
              last = streamed.id;
              const event = eventOf(streamed);
              if (event !== null) setLive(l => ({ ...l, events: [event, ...l.events].slice(0, KEPT) }));
            },
          });
        } catch (problem) {
          if (end.signal.aborted) return;
          if (problem instanceof ApiProblem && problem.code !== 'unreachable') {
            setLive(l => ({ ...l, error: problem }));
            waitMs = Math.max(AGAIN_MS, problem.retryAfter * 1000);
          }
        }
        if (end.signal.aborted) return;
        setLive(l => ({ ...l, state: 'lost' }));
        await pause(waitMs, end.signal);
      }
    };
    void follow();
    return () => end.abort();
  }, [query]);
  return live;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

/** The row of a CloudEvent; null for what is none. */
function eventOf({ data, id, type }: Streamed): ShownEvent | null {
  let event: unknown;
  try {
    event = JSON.parse(data);
  } catch {
    return null;
  }
  if (!isObject(event)) return null;
  return {
    id: String(event.id),
    number: Number(id),
    plugin_id: String(event.source).replace(/^\/plugins\//, ''),
    type,
    at: String(event.time),
    request_id: null,
    data: event.data,
  };
}
