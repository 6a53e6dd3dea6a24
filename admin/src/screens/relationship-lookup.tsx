import { SegmentedControl, Select, SimpleGrid, Stack, Text, useMatches } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { useSearchState } from '../app/use-search-state.ts';
import { CheckAnswer } from '../graph/check-answer.tsx';
import { ObjectName } from '../graph/object-name.tsx';
import { useObjectNames } from '../graph/object-names.ts';
import { ObjectPicker } from '../graph/object-picker.tsx';
import { type Definition, useGraphWords } from '../graph/schema.ts';
import { Empty } from '../parts/empty.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkButton } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';

const QUESTIONS = ['check', 'objects', 'people'] as const;
type Question = (typeof QUESTIONS)[number];
type Asked = { resource_type: string; permission: string };
type Found = { type: string; id: string };

/** Asks the graph in one of three ways; the question stands in the address. */
export default function RelationshipLookup({ definitions }: { definitions: readonly Definition[] }) {
  const { t } = useTranslation();
  const { label } = useGraphWords();
  const [s, setSearch] = useSearchState();
  const question: Question = QUESTIONS.find(q => q === s.question) ?? 'check';
  const orientation = useMatches({ base: 'vertical', xs: 'horizontal' } as const);
  const types = definitions.filter(d => d.permissions.length > 0);
  const definition = types.find(d => d.name === s.type);
  const { object = '', permission = '', type = '', user = '' } = s;
  const needsUser = question !== 'people';
  const needsObject = question !== 'objects';
  const isAsked = type !== '' && permission !== '' && (!needsUser || user !== '') && (!needsObject || object !== '');
  const asked = { resource_type: type, permission };
  return (
    <Stack>
      <SegmentedControl
        aria-label={t('relationships.question')}
        orientation={orientation}
        fullWidth={orientation === 'vertical'}
        value={question}
        onChange={q => setSearch({ question: q === 'check' ? undefined : q })}
        data={QUESTIONS.map(q => ({ value: q, label: t(`relationships.ask.${q}`) }))}
        style={{ alignSelf: orientation === 'horizontal' ? 'flex-start' : undefined }}
      />
      <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }}>
        {needsUser && (
          <ObjectPicker
            type="user"
            label={t('relationships.person')}
            value={user}
            onChosen={id => setSearch({ user: id === '' ? undefined : id })}
          />
        )}
        <Select
          label={t('relationships.objectType')}
          data={types.map(d => ({ value: d.name, label: label(d.name) }))}
          value={s.type ?? null}
          onChange={v => setSearch({ type: v ?? undefined, object: undefined, permission: undefined })}
          allowDeselect={false}
        />
        <Select
          label={t('relationships.permission')}
          data={[
            {
              group: t('relationships.permissions'),
              items: (definition?.permissions ?? []).map(p => ({ value: p.name, label: label(p.name) })),
            },
            {
              group: t('relationships.relations'),
              items: (definition?.relations ?? [])
                .filter(r => r.subjects.includes('user'))
                .map(r => ({ value: r.name, label: label(r.name) })),
            },
          ]}
          value={s.permission ?? null}
          onChange={v => setSearch({ permission: v ?? undefined })}
          disabled={definition === undefined}
          allowDeselect={false}
        />
        {needsObject && (
          <ObjectPicker
            type={type}
            label={t('relationships.object')}
            value={object}
            onChosen={id => setSearch({ object: id === '' ? undefined : id })}
          />
        )}
      </SimpleGrid>
      {!isAsked ? (
        <Text c="dimmed">{t(`relationships.askAbout.${question}`)}</Text>
      ) : question === 'check' ? (
        <Check asked={asked} user={user} object={object} />
      ) : question === 'objects' ? (
        <Answers asked={asked} user={user} />
      ) : (
        <Answers asked={asked} object={object} />
      )}
    </Stack>
  );
}

function Check({ asked, object, user }: { asked: Asked; user: string; object: string }) {
  const query = useQuery({
    queryKey: ['graph', 'check', asked, user, object],
    queryFn: async () => {
      const answer = answered(
        await api.GET('/api/admin/relationships/lookup', {
          params: { query: { ...asked, user, resource_id: object } },
        }),
      );
      if (!('steps' in answer)) throw new Error('the service answered another question');
      return answer;
    },
    staleTime: 0,
  });
  return <Loaded query={query}>{({ allowed, steps }) => <CheckAnswer isAllowed={allowed} steps={steps} />}</Loaded>;
}

/** The objects of a user's permission, or the users who have it on an object, each with the way to its reason. */
function Answers({ asked, object, user }: { asked: Asked; user?: string; object?: string }) {
  const { t } = useTranslation();
  const list = useKeyset<Found, { items: Found[]; next_cursor: string | null }>(
    ['graph', 'lookup', asked, user, object],
    async cursor => {
      const query = { ...asked, user, resource_id: object, limit: 50, cursor };
      const answer = answered(await api.GET('/api/admin/relationships/lookup', { params: { query } }));
      if (!('items' in answer)) throw new Error('the service answered another question');
      const items = answer.items.map(i =>
        'user' in i ? { type: 'user', id: i.user } : { type: i.resource_type, id: i.resource_id },
      );
      return { items, next_cursor: answer.next_cursor };
    },
  );
  const nameOf = useObjectNames(list.rows);
  return (
    <KeysetTable
      label={t(user === undefined ? 'relationships.ask.people' : 'relationships.ask.objects')}
      query={list}
      rowKey={r => r.id}
      columns={[
        {
          key: 'name',
          title: t(user === undefined ? 'relationships.person' : 'relationships.object'),
          cell: r => <ObjectName {...r} name={nameOf(r)} side={r.type === 'user' ? 'subject' : 'object'} />,
        },
        {
          key: 'why',
          title: '',
          align: 'right',
          cell: r => (
            <LinkButton
              to="."
              search={before => ({
                ...before,
                question: undefined,
                user: user ?? r.id,
                object: object ?? r.id,
              })}
              size="compact-sm"
              variant="light"
            >
              {t('relationships.showWay')}
            </LinkButton>
          ),
        },
      ]}
      empty={
        <Empty
          icon={IconSearch}
          title={t('common.nothingFound')}
          text={t(user === undefined ? 'relationships.noPeople' : 'relationships.noObjects')}
        />
      }
    />
  );
}
