import { useQueryClient } from '@tanstack/react-query';
import { ApiProblem } from '../api/problem.ts';
import { notifyDone } from './problem.tsx';

/**
 * Changes settings of a plugin, or of a trigger or command of it, and reads again what the pages show of them.
 *
 * @param saved what is said when they are saved
 */
export function useSettingsChange(plugin: string, saved: string) {
  const queries = useQueryClient();
  const readAgain = (): Promise<void> => queries.invalidateQueries({ queryKey: ['plugins', plugin] });
  /** Waits for an answer. After a refusal for a change of another administrator, what that one has saved is read. */
  const sent = async (work: Promise<unknown>): Promise<void> => {
    try {
      await work;
    } catch (problem) {
      if (problem instanceof ApiProblem && problem.code === 'precondition_failed') await readAgain();
      throw problem;
    }
  };
  /** Shows what is saved now. */
  const done = async (): Promise<void> => {
    await readAgain();
    notifyDone(saved);
  };
  return { sent, done };
}
