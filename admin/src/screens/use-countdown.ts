import { useEffect, useState } from 'react';
import { ApiProblem } from '../api/problem.ts';

/** Seconds until another attempt is let in; 0 where an error is of another kind. */
export function useCountdown(error: unknown): number {
  const [left, setLeft] = useState(0);
  useEffect(() => {
    if (!(error instanceof ApiProblem) || error.code !== 'too_many_attempts') return setLeft(0);
    const end = Date.now() + error.retryAfter * 1000;
    const tick = (): void => setLeft(Math.max(0, Math.ceil((end - Date.now()) / 1000)));
    tick();
    const timer = setInterval(tick, 250);
    return () => clearInterval(timer);
  }, [error]);
  return left;
}
