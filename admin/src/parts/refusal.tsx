import { Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { ApiProblem } from '../api/problem.ts';
import { ProblemAlert } from './problem.tsx';

/**
 * Why a login was refused, or how long the next attempt has to wait.
 *
 * @param props.wait seconds that are left
 */
export function Refusal({ error, wait }: { error: unknown; wait: number }) {
  const { t } = useTranslation();
  if (wait > 0)
    return (
      <Text size="sm" c="orange" role="status">
        {t('login.wait', { count: wait })}
      </Text>
    );
  return <ProblemAlert error={error instanceof ApiProblem && error.code === 'too_many_attempts' ? null : error} />;
}
