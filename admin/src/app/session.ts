import { notifications } from '@mantine/notifications';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api, noteSession } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { notifyProblem } from '../parts/problem.tsx';
import { isUnsaved } from '../parts/use-leave-question.ts';

const KEY = ['session'];

/** Who is logged in, and whether the service is still being set up. */
export const useSession = () =>
  useQuery({
    queryKey: KEY,
    queryFn: async () => {
      const session = answered(await api.GET('/api/admin/auth/check'));
      noteSession(session.authenticated && !session.setup_mode);
      return session;
    },
    // A session that ends by itself is noticed at the next request, and asked for over the page: what was typed stays.
    staleTime: Number.POSITIVE_INFINITY,
  });

/** One's own passkeys, authenticator app and recovery codes. */
export const useSecondFactor = () =>
  useQuery({
    queryKey: ['second-factor'],
    queryFn: async () => answered(await api.GET('/api/admin/auth/second-factor')),
  });

/** Reads everything again: another person may be logged in now. */
export function useNewSession(): () => Promise<void> {
  const queries = useQueryClient();
  return async () => {
    await queries.invalidateQueries({ queryKey: KEY });
    await queries.invalidateQueries();
  };
}

/** Ends the session, and forgets what was read in it. */
export function useLogout(): () => Promise<void> {
  const queries = useQueryClient();
  const { t } = useTranslation();
  return async () => {
    const question = { title: t('common.leaveTitle'), text: t('common.leaveText'), action: t('shell.logout') };
    if (isUnsaved() && !(await confirmed({ ...question, isDangerous: true }))) return;
    await queries.cancelQueries();
    try {
      await api.POST('/api/admin/auth/logout');
    } catch (problem) {
      return notifyProblem(problem);
    }
    noteSession(false);
    notifications.clean();
    await queries.invalidateQueries({ queryKey: KEY });
    queries.removeQueries({ predicate: q => q.queryKey[0] !== KEY[0] });
  };
}
