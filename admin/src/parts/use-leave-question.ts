import { useBlocker } from '@tanstack/react-router';
import { createContext, useContext, useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { confirmed } from '../api/questions.ts';

/** The dialog a form stands in; empty on the page itself. */
export const FormPlace = createContext('');

/** Forms with something to lose: the first of them asks for all. */
const unsaved: Array<{ isSaved: boolean; place: string }> = [];

/** Whether there is a form with something to lose. */
export const isUnsaved = (): boolean => unsaved.some(f => !f.isSaved);

/** Asks before a dialog is closed whose form is not saved. @returns whether it may be closed */
export async function mayClose(
  place: string,
  words: { title: string; text: string; action: string },
): Promise<boolean> {
  const open = unsaved.filter(f => f.place === place && !f.isSaved);
  if (open.length === 0) return true;
  if (!(await confirmed({ ...words, isDangerous: true }))) return false;
  for (const form of open) form.isSaved = true;
  return true;
}

/** Members of an address that no form depends on. */
const HARMLESS = ['window'];

type Place = { pathname: string; search: object };

/** Whether a change of the address leaves every form where it is. */
function isSameScreen(from: Place, to: Place, harmless: readonly string[]): boolean {
  const named = ({ search }: Place): string =>
    JSON.stringify(
      Object.entries(search)
        .filter(([name, value]) => value !== undefined && !HARMLESS.includes(name) && !harmless.includes(name))
        .sort(),
    );
  return from.pathname === to.pathname && named(from) === named(to);
}

/**
 * Asks before a screen is left whose contents are not saved, and has the browser ask when the page is.
 *
 * @param isChanged whether there is something to lose
 * @param text what would be lost
 * @param harmless more members of the address that the form does not depend on
 * @returns says that it is saved: one may go now
 */
export function useLeaveQuestion(isChanged: boolean, text: string, harmless: readonly string[] = []): () => void {
  const { t } = useTranslation();
  const place = useContext(FormPlace);
  const form = useRef({ isSaved: false, place });
  useEffect(() => {
    if (!isChanged) return;
    const own = form.current;
    // What is typed after it was saved is to be saved again.
    own.isSaved = false;
    unsaved.push(own);
    return () => void unsaved.splice(unsaved.indexOf(own), 1);
  }, [isChanged]);
  useBlocker({
    disabled: !isChanged,
    enableBeforeUnload: () => isChanged && !form.current.isSaved,
    shouldBlockFn: async ({ current, next }) =>
      unsaved.find(f => !f.isSaved) === form.current &&
      !isSameScreen(current, next, harmless) &&
      !(await confirmed({ title: t('common.leaveTitle'), text, action: t('common.leave'), isDangerous: true })),
  });
  return () => {
    form.current.isSaved = true;
  };
}
