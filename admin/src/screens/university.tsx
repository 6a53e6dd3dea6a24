import { Tabs } from '@mantine/core';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { useSearchState } from '../app/use-search-state.ts';
import { Page } from '../parts/page.tsx';

const UniversityTypes = lazy(() => import('./university-types.tsx'));
const UniversityPulls = lazy(() => import('./university-pulls.tsx'));
const ImportHistory = lazy(() => import('./import-history.tsx'));

const TABS = ['types', 'pulls', 'history'] as const;

/** What is held of the university, how it comes in by file or from a source, and what came in when. */
export default function University() {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const tab = TABS.find(x => x === search.tab) ?? 'types';
  return (
    <Page title={t('nav.university')} about={t('university.about')}>
      <Tabs
        value={tab}
        onChange={to =>
          setSearch({ tab: to === 'types' ? undefined : (to ?? undefined), type: undefined, kind: undefined }, true)
        }
        keepMounted={false}
      >
        <Tabs.List mb="md">
          {TABS.map(x => (
            <Tabs.Tab key={x} value={x}>
              {t(`university.tab.${x}`)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Suspense>
          <Tabs.Panel value="types">
            <UniversityTypes />
          </Tabs.Panel>
          <Tabs.Panel value="pulls">
            <UniversityPulls />
          </Tabs.Panel>
          <Tabs.Panel value="history">
            <ImportHistory />
          </Tabs.Panel>
        </Suspense>
      </Tabs>
    </Page>
  );
}
