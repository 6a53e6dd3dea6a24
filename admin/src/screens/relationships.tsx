import { Tabs } from '@mantine/core';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { May } from '../app/may.tsx';
import { useSearchState } from '../app/use-search-state.ts';
import { useGraphSchema } from '../graph/schema.ts';
import { Loaded } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { RelationshipTable } from './relationship-table.tsx';

const RelationshipForm = lazy(() => import('./relationship-form.tsx'));
const RelationshipLookup = lazy(() => import('./relationship-lookup.tsx'));
const GraphSchemaView = lazy(() => import('./graph-schema.tsx'));

const TABS = ['list', 'add', 'ask', 'schema'] as const;

/** Who stands in which relation to what: looked through, added to, asked, and the rules behind it. */
export default function Relationships() {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const schema = useGraphSchema();
  const tab = TABS.find(x => x === search.tab) ?? 'list';
  return (
    <Page title={t('nav.relationships')} about={t('relationships.about')}>
      <Tabs
        value={tab}
        onChange={to => setSearch({ tab: to === 'list' ? undefined : (to ?? undefined) }, true)}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          {TABS.map(x => (
            <Tabs.Tab key={x} value={x}>
              {t(`relationships.tab.${x}`)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Loaded query={schema}>
          {s => (
            <Suspense>
              <Tabs.Panel value="list">
                <RelationshipTable definitions={s.definitions} />
              </Tabs.Panel>
              <Tabs.Panel value="add">
                <May need="access">
                  <RelationshipForm definitions={s.definitions} />
                </May>
              </Tabs.Panel>
              <Tabs.Panel value="ask">
                <RelationshipLookup definitions={s.definitions} />
              </Tabs.Panel>
              <Tabs.Panel value="schema">
                <GraphSchemaView schema={s} />
              </Tabs.Panel>
            </Suspense>
          )}
        </Loaded>
      </Tabs>
    </Page>
  );
}
