import { useEffect, useState } from 'react';
import { followEvents, type Streamed } from './event-stream.ts';
import { ApiProblem } from './problem.ts';

/** A list that grows for hours must not fill the memory of the page. */
const KEPT = 200;
/** Numbers of rows that came: a stream that is opened again may bring the last ones once more. */
const KNOWN = 2000;
const AGAIN_MS = 2000;

export type Live<Row> = {
  state: 'connecting' | 'open' | 'lost';
  rows: readonly Row[];
  /** Why the service refuses the stream; it is tried again all the same. */
  error: ApiProblem | null;
};

const NOTHING: Live<never> = { state: 'connecting', rows: [], error: null };

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
 * A list of the service as it grows, newest first. A stream that ends is opened again behind the last row that came, so none is
 * missed.
 *
 * @param path of the stream, with its filters; null: nothing is followed
 * @param rowOf the row of an event of the stream; null for what is none. Always the same function
 */
export function useLive<Row>(path: string | null, rowOf: (streamed: Streamed) => Row | null): Live<Row> {
  const [live, setLive] = useState<Live<Row>>(NOTHING);
  useEffect(() => {
    setLive(NOTHING);
    if (path === null) return;
    const end = new AbortController();
    let last = '';
    const known = new Set<string>();
    const follow = async (): Promise<void> => {
      while (!end.signal.aborted) {
        let waitMs = AGAIN_MS;
        try {
          await followEvents(path, last, end.signal, {
            open: () => setLive(l => ({ ...l, state: 'open', error: null })),
            event(streamed) {
              // A row that another host wrote at the same moment may come late, under a lower number.
              if (last === '' || Number(streamed.id) > Number(last)) last = streamed.id;
              const row = rowOf(streamed);
              if (row === null || known.has(streamed.id)) return;
              known.add(streamed.id);
              const [oldest = ''] = known;
              if (known.size > KNOWN) known.delete(oldest);
              setLive(l => ({ ...l, rows: [row, ...l.rows].slice(0, KEPT) }));
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
  }, [path, rowOf]);
  return live;
}
