import { useTranslation } from 'react-i18next';
import { Page } from '../parts/page.tsx';
import ExecutionList from './execution-list.tsx';

/** What ran, of all plugins. */
export default function Executions() {
  const { t } = useTranslation();
  return (
    <Page title={t('nav.executions')} about={t('executions.about')}>
      <ExecutionList plugin={null} />
    </Page>
  );
}
