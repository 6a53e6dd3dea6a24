import { useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { ApiProblem } from '../api/problem.ts';
import { notifyDone } from './problem.tsx';

/** Changes settings of one trigger or command of a plugin, and reads again what the pages show of them. */
export function useSettingsChange(plugin: string, name: string) {
  const { t } = useTranslation();
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
    notifyDone(t('access.saved', { trigger: name }));
  };
  return { sent, done };
}
