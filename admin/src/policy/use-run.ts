import { useEffect, useRef, useState } from 'react';

/** Work that takes a while, one at a time: it is stopped on request and when its component goes, and then is no error. */
export function useRun(): {
  isRunning: boolean;
  error: unknown;
  start: (work: (signal: AbortSignal) => Promise<void>) => void;
  stop: () => void;
} {
  const [error, setError] = useState<unknown>(null);
  const [isRunning, setRunning] = useState(false);
  const turn = useRef<AbortController | null>(null);
  useEffect(() => () => turn.current?.abort(), []);
  const run = async (work: (signal: AbortSignal) => Promise<void>): Promise<void> => {
    turn.current = new AbortController();
    const { signal } = turn.current;
    setRunning(true);
    setError(null);
    try {
      await work(signal);
    } catch (problem) {
      if (!signal.aborted) setError(problem);
    } finally {
      setRunning(false);
    }
  };
  return { isRunning, error, start: work => void run(work), stop: () => turn.current?.abort() };
}
