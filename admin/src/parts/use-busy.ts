import { useState } from 'react';
import { notifyProblem } from './problem.tsx';

/** Does one piece of work at a time; its failure is said. @returns whether it is under way, and what begins it */
export function useBusy(): [isBusy: boolean, begin: (work: () => Promise<unknown>) => void] {
  const [isBusy, setBusy] = useState(false);
  const begin = (work: () => Promise<unknown>): void => {
    if (isBusy) return;
    setBusy(true);
    void work()
      .catch(notifyProblem)
      .finally(() => setBusy(false));
  };
  return [isBusy, begin];
}
