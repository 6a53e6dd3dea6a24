import { useBlocker } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { confirmed } from '../api/questions.ts';

/** Forms of the screen with something to lose: the first of them asks for all. */
const unsaved: Array<{ isSaved: boolean }> = [];

/** Members of an address that no form depends on. */
const HARMLESS = ['window'];

type Place = { pathname: string; search: object };

/** Whether a change of the address leaves every form where it is. */
function isSameScreen(from: Place, to: Place): boolean {
  const named = ({ search }: Place): string =>
    JSON.stringify(
      Object.entries(search)
        .filter(([name, value]) => value !== undefined && !HARMLESS.includes(name))
        .sort(),
    );
  return from.pathname === to.pathname && named(from) === named(to);
}

/**
 * Asks before a screen is left whose contents are not saved, and has the browser ask when the page is.
 *
 * @param isChanged whether there is something to lose
 * @param text what would be lost
 * @returns says that it is saved: one may go now
 */
export function useLeaveQuestion(isChanged: boolean, text: string): () => void {
  const { t } = useTranslation();
  const form = useRef({ isSaved: false });
  useEffect(() => {
    if (!isChanged) return;
    const own = form.current;
    unsaved.push(own);
    return () => void unsaved.splice(unsaved.indexOf(own), 1);
  }, [isChanged]);
  useBlocker({
    disabled: !isChanged,
    enableBeforeUnload: () => isChanged && !form.current.isSaved,
    shouldBlockFn: async ({ current, next }) =>
      unsaved.find(f => !f.isSaved) === form.current &&
      !isSameScreen(current, next) &&
      !(await confirmed({ title: t('common.leaveTitle'), text, action: t('common.leave'), isDangerous: true })),
  });
  return () => {
    form.current.isSaved = true;
  };
}
