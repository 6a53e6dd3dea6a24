import { Button, Group, Tabs, Text } from '@mantine/core';
import { IconHelpCircle, IconPencil } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { May, useRefusal } from '../app/may.tsx';
import { NotFound } from '../app/not-found.tsx';
import { useSearchState } from '../app/use-search-state.ts';
import { Dialog } from '../parts/dialog.tsx';
import { LinkAnchor, LinkButton } from '../parts/links.tsx';
import { LoadedPage } from '../parts/loaded-page.tsx';
import { Page } from '../parts/page.tsx';
import { notifyDone } from '../parts/problem.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { nameOf } from './people.tsx';
import { PersonActions } from './person-actions.tsx';
import { PersonForm } from './person-form.tsx';

const PersonAbout = lazy(() => import('./person-about.tsx'));
const PersonRoles = lazy(() => import('./person-roles.tsx'));
const PersonRelationships = lazy(() => import('./person-relationships.tsx'));
const PersonMay = lazy(() => import('./person-may.tsx'));
const PersonCredentials = lazy(() => import('./person-credentials.tsx'));

const TABS = ['about', 'roles', 'relationships', 'may', 'credentials'] as const;

/** One person: attributes, roles, groups, what they may call, and where they are logged in. */
export default function Person() {
  const { t } = useTranslation();
  const params = useParams({ strict: false });
  const user = Number(params.user);
  const isNumber = Number.isSafeInteger(user) && user > 0;
  const [search, setSearch] = useSearchState();
  const tab = TABS.find(x => x === search.tab) ?? 'about';
  const query = useQuery({
    queryKey: ['users', 'one', user],
    queryFn: async () => answered(await api.GET('/api/admin/users/{user}', { params: { path: { user } } })),
    enabled: isNumber,
  });
  const mayEdit = useRefusal()('admin') === null;
  const isEditing = search.edit === '1' && mayEdit;
  const stopEditing = (): void => setSearch({ edit: undefined });
  if (!isNumber) return <NotFound />;
  const crumbs = (
    <LinkAnchor to="/admin/people" size="sm">
      {t('nav.people')}
    </LinkAnchor>
  );
  return (
    <LoadedPage key={user} query={query} title={`user:${user}`} crumbs={crumbs}>
      {person => (
        <Page
          title={nameOf(person)}
          crumbs={crumbs}
          about={
            <Group gap="xs" mt={4}>
              <AdministratorBadge user={user} />
              {person.external_id !== null && (
                <Text size="sm" ff="monospace" style={{ overflowWrap: 'anywhere' }}>
                  {person.external_id}
                </Text>
              )}
            </Group>
          }
          actions={
            <>
              <May need="admin" isInline>
                <Button
                  variant="default"
                  leftSection={<IconPencil size={16} />}
                  onClick={() => setSearch({ edit: '1' })}
                >
                  {t('person.edit')}
                </Button>
              </May>
              <LinkButton
                variant="default"
                to="/admin/why"
                search={{ user: String(user) }}
                leftSection={<IconHelpCircle size={16} />}
              >
                {t('person.why')}
              </LinkButton>
              <PersonActions person={person} />
            </>
          }
        >
          <Tabs
            value={tab}
            onChange={to => setSearch({ tab: to === 'about' ? undefined : (to ?? undefined), plugin: undefined }, true)}
            keepMounted={false}
          >
            <Tabs.List mb="md">
              {TABS.map(x => (
                <Tabs.Tab key={x} value={x}>
                  {t(`person.tab.${x}`)}
                </Tabs.Tab>
              ))}
            </Tabs.List>
            <Suspense>
              <Tabs.Panel value="about">
                <PersonAbout person={person} />
              </Tabs.Panel>
              <Tabs.Panel value="roles">
                <PersonRoles person={person} />
              </Tabs.Panel>
              <Tabs.Panel value="relationships">
                <PersonRelationships person={person} />
              </Tabs.Panel>
              <Tabs.Panel value="may">
                <PersonMay person={person} />
              </Tabs.Panel>
              <Tabs.Panel value="credentials">
                <PersonCredentials person={person} />
              </Tabs.Panel>
            </Suspense>
          </Tabs>
          <Dialog opened={isEditing} onClose={stopEditing} title={t('person.editTitle', { name: nameOf(person) })}>
            <PersonForm
              person={person}
              onCancel={stopEditing}
              onDone={saved => {
                stopEditing();
                notifyDone(t('person.saved', { name: nameOf(saved) }));
              }}
            />
          </Dialog>
        </Page>
      )}
    </LoadedPage>
  );
}

/** Says of an administrator that the person is one. */
function AdministratorBadge({ user }: { user: number }) {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['admins', 'one', user],
    queryFn: async () => answered(await api.GET('/api/admin/admins', { params: { query: { user } } })),
  });
  if (query.data === undefined || query.data.items.length === 0) return null;
  return (
    <LinkAnchor to="/admin/administrators" underline="never">
      <StateBadge kind="closed" label={t('person.admin')} />
    </LinkAnchor>
  );
}
