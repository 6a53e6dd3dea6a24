import { useQueryClient } from '@tanstack/react-query';
import { ApiProblem } from '../api/problem.ts';
import { notifyDone } from './problem.tsx';

const useReadAgain = (plugin: string): (() => Promise<void>) => {
  const queries = useQueryClient();
  return async () => {
    queries.removeQueries({ queryKey: ['why'] });
    await Promise.all(
      [['plugins', plugin], ['plugins', 'list'], ['attention']].map(queryKey =>
        queries.invalidateQueries({ queryKey }),
      ),
    );
  };
};

/** Waits for an answer. After a refusal for a change of another administrator, what that one has saved is read. */
export function useSent(plugin: string): (work: Promise<unknown>) => Promise<void> {
  const readAgain = useReadAgain(plugin);
  return async work => {
    try {
      await work;
    } catch (problem) {
      if (problem instanceof ApiProblem && problem.code === 'precondition_failed') await readAgain();
      throw problem;
    }
  };
}

/** Changes settings of a plugin, or of a trigger or command of it, and reads again what the pages show of them. */
export function useSettingsChange(plugin: string) {
  const readAgain = useReadAgain(plugin);
  const sent = useSent(plugin);
  /** Shows what is saved now, and says what that was. */
  const done = async (saved: string): Promise<void> => {
    await readAgain();
    notifyDone(saved);
  };
  return { sent, done };
}
