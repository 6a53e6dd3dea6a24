import { useRouter } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { useLeaveQuestion } from './use-leave-question.ts';

/** Asks before a screen is left that shows what is not shown again. Where there are no screens, nothing can be left. */
export function LeaveGuard() {
  const router: unknown = useRouter({ warn: false });
  return router == null ? null : <Asks />;
}

function Asks() {
  const { t } = useTranslation();
  useLeaveQuestion(true, t('common.onceText'));
  return null;
}
