import { useBlocker } from '@tanstack/react-router';
import { useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { confirmed } from '../api/questions.ts';

/**
 * Asks before a screen is left whose contents are not saved, and has the browser ask when the page is.
 *
 * @param isChanged whether there is something to lose
 * @param text what would be lost
 * @returns says that it is saved: one may go now
 */
export function useLeaveQuestion(isChanged: boolean, text: string): () => void {
  const { t } = useTranslation();
  const isSaved = useRef(false);
  useBlocker({
    disabled: !isChanged,
    enableBeforeUnload: () => isChanged && !isSaved.current,
    shouldBlockFn: async () =>
      !isSaved.current &&
      !(await confirmed({ title: t('common.leaveTitle'), text, action: t('common.leave'), isDangerous: true })),
  });
  return () => {
    isSaved.current = true;
  };
}
