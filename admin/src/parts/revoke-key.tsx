import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { confirmed } from '../api/questions.ts';
import { notifyDone, notifyProblem } from './problem.tsx';

/** Revokes a key or token, once that is confirmed. */
export function RevokeKey(props: {
  name: string;
  question: { title: string; text: string };
  /** What is said afterwards. */
  done: string;
  /** The query of the list it is taken from. */
  list: readonly unknown[];
  revoke: () => Promise<unknown>;
}) {
  const { done, list, name, question, revoke } = props;
  const { t } = useTranslation();
  const queries = useQueryClient();
  const ask = async (): Promise<void> => {
    if (!(await confirmed({ ...question, action: t('keys.revoke'), isDangerous: true }))) return;
    try {
      await revoke();
      notifyDone(done);
    } catch (problem) {
      notifyProblem(problem);
    }
    await queries.invalidateQueries({ queryKey: list });
  };
  return (
    <Button
      size="compact-sm"
      variant="light"
      color="red"
      aria-label={t('keys.revokeLabel', { name })}
      onClick={() => void ask()}
    >
      {t('keys.revoke')}
    </Button>
  );
}
