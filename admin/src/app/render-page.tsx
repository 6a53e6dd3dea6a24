import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import './page.css';
import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { type ReactNode, StrictMode, useMemo } from 'react';
import { createRoot } from 'react-dom/client';
import { useTranslation } from 'react-i18next';
import { ApiProblem } from '../api/problem.ts';
import { startTexts } from '../texts/index.ts';
import { keepFocus } from './keep-focus.ts';
import { Questions } from './questions.tsx';
import { styleNonce, themeOf } from './theme.ts';
import { wordFields } from './word-fields.ts';

const RETRIES = 2;

/** Shows a page in its language and colours, with what it asks over itself. */
export async function renderPage(page: ReactNode): Promise<void> {
  await startTexts();
  const queries = new QueryClient({
    defaultOptions: {
      // Without a network a request fails at once, and says so; it does not wait without a word.
      mutations: { networkMode: 'always' },
      queries: {
        networkMode: 'always',
        staleTime: 5_000,
        // What the service has refused it refuses again; what could not be reached may come back.
        retry: (count, error) =>
          count < RETRIES && error instanceof ApiProblem && (error.status === 0 || error.status === 503),
      },
    },
  });
  const root = document.getElementById('root');
  if (root === null) throw new Error('the page has no #root');
  keepFocus();
  wordFields();
  createRoot(root).render(
    <StrictMode>
      <Kit>
        <QueryClientProvider client={queries}>
          {/* The middle of the head is empty; buttons of forms and rows of lists are below. */}
          <Notifications position="top-center" />
          <Questions />
          {page}
        </QueryClientProvider>
      </Kit>
    </StrictMode>,
  );
}

/** The kit, with words of the page's language. */
function Kit({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  const close = t('common.close');
  const show = t('common.showPassword');
  const theme = useMemo(() => themeOf(close, show), [close, show]);
  return (
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={styleNonce}>
      {children}
    </MantineProvider>
  );
}
