import { Button, Code, Group, Text } from '@mantine/core';
import { IconSearch, IconUserPlus, IconUsers } from '@tabler/icons-react';
import { useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { May, useRefusal } from '../app/may.tsx';
import { useSearchState } from '../app/use-search-state.ts';
import { ClearFilters } from '../parts/clear-filters.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Empty } from '../parts/empty.tsx';
import { type Column, KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkAnchor, LinkButton } from '../parts/links.tsx';
import { Page } from '../parts/page.tsx';
import { notifyDone } from '../parts/problem.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';
import { PersonForm } from './person-form.tsx';
import { Search } from './plugins.tsx';

type User = Schemas['User'];

/** Everyone the service knows, found by a part of the name or email, or by an id. */
export default function People() {
  const { t } = useTranslation();
  const go = useNavigate();
  const [{ add, role, search = '' }, setSearch] = useSearchState();
  const list = useKeyset<User, { items: User[] }>(['users', 'list', search], async cursor =>
    answered(
      await api.GET('/api/admin/users', {
        params: { query: { limit: 50, cursor, ...(search === '' ? {} : { search }) } },
      }),
    ),
  );
  const mayAdd = useRefusal()('admin') === null;
  const stopAdding = (): void => setSearch({ add: undefined, role: undefined });
  const addButton = (
    <May need="admin" isInline>
      <Button leftSection={<IconUserPlus size={16} />} onClick={() => setSearch({ add: '1' })}>
        {t('people.add')}
      </Button>
    </May>
  );
  return (
    <Page title={t('nav.people')} about={t('people.about')} actions={addButton}>
      <div>
        <Search
          value={search}
          onChange={text => setSearch({ search: text === '' ? undefined : text })}
          label={t('people.search')}
        />
        <Text size="xs" c="dimmed" mt={4}>
          {t('people.searchAbout')}
        </Text>
      </div>
      <KeysetTable
        label={t('nav.people')}
        query={list}
        rowKey={u => u.id}
        columns={usePersonColumns()}
        empty={
          search === '' ? (
            <Empty
              icon={IconUsers}
              title={t('people.emptyTitle')}
              text={t('people.empty')}
              action={
                <Group justify="center">
                  <LinkButton to="/admin/university">{t('people.import')}</LinkButton>
                  <May need="admin" isInline>
                    <Button variant="default" onClick={() => setSearch({ add: '1' })}>
                      {t('people.add')}
                    </Button>
                  </May>
                </Group>
              }
            />
          ) : (
            <Empty
              icon={IconSearch}
              title={t('common.nothingFound')}
              text={t('common.nothingFoundFor', { search })}
              action={<ClearFilters of={['search']} />}
            />
          )
        }
      />
      <Dialog opened={add === '1' && mayAdd} onClose={stopAdding} title={t('people.add')}>
        <PersonForm
          person={null}
          role={role}
          onCancel={stopAdding}
          onDone={async made => {
            notifyDone(t('people.added', { name: nameOf(made) }));
            await go({ to: '/admin/people/$user', params: { user: String(made.id) } });
          }}
        />
      </Dialog>
    </Page>
  );
}

/** How a person is called where there is no name. */
export const nameOf = (u: { display_name: string; external_id: string | null; id: number }): string =>
  u.display_name || (u.external_id ?? `#${u.id}`);

function usePersonColumns(): ReadonlyArray<Column<User>> {
  const { t } = useTranslation();
  return [
    {
      key: 'name',
      title: t('people.name'),
      cell: u => (
        <div>
          <LinkAnchor to="/admin/people/$user" params={{ user: String(u.id) }} fw={500}>
            {u.display_name || t('people.noName')}
          </LinkAnchor>
          <Text size="xs" c="dimmed" hiddenFrom="sm">
            {u.external_id ?? `#${u.id}`}
          </Text>
        </div>
      ),
    },
    {
      key: 'external',
      title: t('people.externalId'),
      from: 'sm',
      cell: u => (u.external_id === null ? '–' : <Code>{u.external_id}</Code>),
    },
    {
      key: 'login',
      title: t('people.login'),
      cell: u =>
        u.idp_accounts_id === null ? (
          <StateBadge kind="off" label={t('people.loginNo')} />
        ) : (
          <StateBadge kind="good" label={t('people.loginYes')} />
        ),
    },
    { key: 'language', title: t('person.language'), from: 'md', cell: u => t(`person.languages.${u.locale}`) },
    { key: 'since', title: t('people.since'), from: 'lg', cell: u => <When at={u.created_at} /> },
  ];
}
