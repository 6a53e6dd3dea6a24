import { useParams } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { NotFound } from '../app/not-found.tsx';
import { LinkButton, PluginCrumbs } from '../parts/links.tsx';
import { LoadedPage } from '../parts/loaded-page.tsx';
import { Page } from '../parts/page.tsx';
import { WholeTimes } from '../parts/time.tsx';
import { ExecutionDetails, isExecutionNumber, useExecution, WhyOfExecution } from './execution-details.tsx';

/** One execution on a page of its own. */
export default function ExecutionScreen() {
  const { t } = useTranslation();
  const { execution = '', id = '' } = useParams({ strict: false });
  const query = useExecution(id, execution);
  if (!isExecutionNumber(execution)) return <NotFound />;
  return (
    <LoadedPage
      query={query}
      title={t('executions.one', { id: execution })}
      crumbs={<PluginCrumbs id={id} tab="executions" />}
    >
      {e => (
        <Page
          title={t('executions.one', { id: e.id })}
          crumbs={<PluginCrumbs id={id} tab="executions" />}
          actions={
            <>
              <LinkButton
                variant="default"
                to="/admin/plugins/$id"
                params={{ id }}
                search={{ tab: 'executions', trigger: e.trigger }}
              >
                {t('executions.likeIt')}
              </LinkButton>
              <WhyOfExecution execution={e} />
            </>
          }
        >
          <WholeTimes value>
            <ExecutionDetails execution={e} />
          </WholeTimes>
        </Page>
      )}
    </LoadedPage>
  );
}
