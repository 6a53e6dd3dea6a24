import { Tabs } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useSearchState } from '../app/use-search-state.ts';
import { Page } from '../parts/page.tsx';
import { EventList } from './event-list.tsx';
import { SubscriptionList } from './subscription-list.tsx';

/** What plugins publish, and who gets it. */
export default function Events() {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const tab = search.tab === 'subscriptions' ? 'subscriptions' : 'events';
  return (
    <Page title={t('nav.events')} about={t('events.about')}>
      <Tabs
        value={tab}
        onChange={to =>
          setSearch({ tab: to === 'subscriptions' ? to : undefined, event: undefined, live: undefined }, true)
        }
        keepMounted={false}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="events">{t('events.tab.events')}</Tabs.Tab>
          <Tabs.Tab value="subscriptions">{t('events.tab.subscriptions')}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="events">
          <EventList />
        </Tabs.Panel>
        <Tabs.Panel value="subscriptions">
          <SubscriptionList />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}
