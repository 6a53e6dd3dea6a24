import { ActionIcon, Button, Group, Select, SimpleGrid, Text, Tooltip } from '@mantine/core';
import { IconHierarchy2, IconPlus, IconTrash } from '@tabler/icons-react';
import { type QueryClient, useQueryClient } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { May } from '../app/may.tsx';
import { useSearchState } from '../app/use-search-state.ts';
import { ObjectName } from '../graph/object-name.tsx';
import { useObjectNames } from '../graph/object-names.ts';
import { ObjectPicker } from '../graph/object-picker.tsx';
import { type Definition, type Relationship, useGraphWords } from '../graph/schema.ts';
import { ClearFilters } from '../parts/clear-filters.tsx';
import { Empty } from '../parts/empty.tsx';
import { FilterFold } from '../parts/filter-fold.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkButton } from '../parts/links.tsx';
import { notifyDone, notifyProblem } from '../parts/problem.tsx';
import { When } from '../parts/time.tsx';

const ORIGINS = ['import', 'manual'] as const;
type RelationshipPage = { items: Relationship[]; next_cursor: string | null };

type Filter = Partial<
  Record<'resource_type' | 'resource_id' | 'relation' | 'subject_type' | 'subject_id', string> & {
    origin: (typeof ORIGINS)[number];
  }
>;

/** The filter in the address; an id counts together with its type. */
function useFilter(): Filter {
  const [s] = useSearchState();
  const origin = ORIGINS.find(o => o === s.origin);
  const given = {
    resource_type: s.type,
    resource_id: s.type === undefined ? undefined : s.object,
    relation: s.relation,
    subject_type: s.subject_type,
    // Without a type it is a person.
    subject_id: s.subject,
    origin,
  };
  return Object.fromEntries(Object.entries(given).filter(([, v]) => v !== undefined && v !== ''));
}

const textOf = (r: Relationship): string =>
  `${r.resource_type}:${r.resource_id}#${r.relation}@${r.subject_type}:${r.subject_id}`;

/** Relationships with filters, where each came from, and their removal. */
export function RelationshipTable({ definitions }: { definitions: readonly Definition[] }) {
  const { t } = useTranslation();
  const { word } = useGraphWords();
  const filter = useFilter();
  const isFiltered = Object.keys(filter).length > 0;
  const list = useKeyset<Relationship, RelationshipPage>(['relationships', filter], async cursor =>
    answered(await api.GET('/api/admin/relationships', { params: { query: { limit: 50, cursor, ...filter } } })),
  );
  const nameOf = useObjectNames(
    list.rows.flatMap(r => [
      { type: r.resource_type, id: r.resource_id },
      { type: r.subject_type, id: r.subject_id },
    ]),
  );
  const { removeMatching, removeOne } = useRemove();
  const words = {
    resource_type: t('relationships.objectType'),
    resource_id: t('relationships.object'),
    relation: t('relationships.relation'),
    subject_type: t('relationships.subjectType'),
    subject_id: t('relationships.subject'),
    origin: t('relationships.origin'),
  };
  return (
    <>
      <Filters definitions={definitions} />
      <Group justify="space-between" my="md">
        <LinkButton
          to="."
          search={before => ({ ...before, tab: 'add' })}
          leftSection={<IconPlus size={16} aria-hidden />}
        >
          {t('relationships.add')}
        </LinkButton>
        {isFiltered && list.rows.length > 0 && (
          <May need="access" isInline>
            <Button
              variant="subtle"
              color="red"
              onClick={() =>
                void removeMatching(filter, {
                  count: list.rows.length,
                  isMore: list.hasNextPage,
                  names: Object.entries(words).flatMap(([member, word]) => {
                    const value = Object.entries(filter).find(([name]) => name === member)?.[1];
                    return value === undefined ? [] : [`${word}: ${value}`];
                  }),
                })
              }
            >
              {t('relationships.removeMatching')}
            </Button>
          </May>
        )}
      </Group>
      {list.rows.some(r => r.origin === 'import') && (
        <Text size="sm" c="dimmed" mb="xs">
          {t('relationships.importRestoresMany')}
        </Text>
      )}
      <KeysetTable
        label={t('nav.relationships')}
        query={list}
        rowKey={textOf}
        columns={[
          {
            key: 'subject',
            title: t('relationships.subject'),
            cell: r => {
              const object = { type: r.subject_type, id: r.subject_id };
              return <ObjectName {...object} name={nameOf(object)} side="subject" />;
            },
          },
          {
            key: 'relation',
            title: t('relationships.isRelation'),
            cell: r => (
              <>
                <Text size="sm" title={r.relation}>
                  {word(r.relation)}
                </Text>
                <Text size="xs" c="dimmed" hiddenFrom="sm">
                  {t(`relationships.originOf.${r.origin}`)}
                </Text>
              </>
            ),
          },
          {
            key: 'object',
            title: t('relationships.ofObject'),
            cell: r => {
              const object = { type: r.resource_type, id: r.resource_id };
              return <ObjectName {...object} name={nameOf(object)} side="object" />;
            },
          },
          {
            key: 'origin',
            title: t('relationships.origin'),
            from: 'sm',
            cell: r => t(`relationships.originOf.${r.origin}`),
          },
          { key: 'at', title: t('relationships.since'), from: 'md', cell: r => <When at={r.created_at} /> },
          {
            key: 'actions',
            title: '',
            align: 'right',
            isSign: true,
            cell: r => (
              <May need="access" isInline>
                <Tooltip label={t('common.remove')}>
                  <ActionIcon
                    variant="subtle"
                    color="red"
                    aria-label={t('relationships.removeNamed', { name: textOf(r) })}
                    onClick={() => void removeOne(r)}
                  >
                    <IconTrash size={16} />
                  </ActionIcon>
                </Tooltip>
              </May>
            ),
          },
        ]}
        empty={
          <Empty
            icon={IconHierarchy2}
            title={t(isFiltered ? 'common.nothingFound' : 'relationships.emptyTitle')}
            text={t(isFiltered ? 'relationships.emptyFilter' : 'relationships.empty')}
            action={
              isFiltered ? (
                <ClearFilters of={['subject_type', 'subject', 'type', 'object', 'relation', 'origin']} />
              ) : (
                <LinkButton to="/admin/university" variant="light">
                  {t('relationships.toUniversity')}
                </LinkButton>
              )
            }
          />
        }
      />
    </>
  );
}

/** Filters as pick lists; all of them stand in the address. */
function Filters({ definitions }: { definitions: readonly Definition[] }) {
  const { t } = useTranslation();
  const { label } = useGraphWords();
  const [s, setSearch] = useSearchState();
  const types = definitions.map(d => ({ value: d.name, label: label(d.name) }));
  const related = definitions.filter(d => s.type === undefined || d.name === s.type).flatMap(d => d.relations);
  const relations = [...new Set(related.map(r => r.name))].map(r => ({ value: r, label: label(r) }));
  const set = [s.subject_type, s.subject, s.relation, s.type, s.object, s.origin].filter(v => v !== undefined).length;
  return (
    <FilterFold count={set}>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3, xl: 6 }} spacing="sm">
        <Select
          label={t('relationships.subjectType')}
          data={types}
          value={s.subject_type ?? null}
          onChange={v => setSearch({ subject_type: v ?? undefined, subject: undefined })}
          placeholder={t('common.all')}
          clearable
          clearButtonProps={{ 'aria-label': t('common.clear') }}
        />
        <ObjectPicker
          type={s.subject_type ?? 'user'}
          label={t(s.subject_type === undefined ? 'relationships.person' : 'relationships.subject')}
          value={s.subject ?? ''}
          onChosen={id => setSearch({ subject: id === '' ? undefined : id })}
        />
        <Select
          label={t('relationships.objectType')}
          data={types.filter(x => x.value !== 'user')}
          value={s.type ?? null}
          onChange={v => setSearch({ type: v ?? undefined, object: undefined, relation: undefined })}
          placeholder={t('common.all')}
          clearable
          clearButtonProps={{ 'aria-label': t('common.clear') }}
        />
        <ObjectPicker
          type={s.type ?? ''}
          label={t('relationships.object')}
          value={s.object ?? ''}
          onChosen={id => setSearch({ object: id === '' ? undefined : id })}
        />
        <Select
          label={t('relationships.relation')}
          data={relations}
          value={s.relation ?? null}
          onChange={v => setSearch({ relation: v ?? undefined })}
          placeholder={t('common.all')}
          clearable
          clearButtonProps={{ 'aria-label': t('common.clear') }}
          searchable
        />
        <Select
          label={t('relationships.origin')}
          data={ORIGINS.map(o => ({ value: o, label: t(`relationships.originOf.${o}`) }))}
          value={s.origin ?? null}
          onChange={v => setSearch({ origin: v ?? undefined })}
          placeholder={t('common.all')}
          clearable
          clearButtonProps={{ 'aria-label': t('common.clear') }}
        />
      </SimpleGrid>
    </FilterFold>
  );
}

/** Reads again what follows from relationships. */
export async function relationshipsChanged(queries: QueryClient): Promise<void> {
  queries.removeQueries({ queryKey: ['why'] });
  await Promise.all(
    [['relationships'], ['graph', 'lookup'], ['roles'], ['users', 'roles']].map(queryKey =>
      queries.invalidateQueries({ queryKey }),
    ),
  );
}

/** Removal, with what an import makes of it. */
function useRemove() {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const done = async (deleted: number, delivered: boolean): Promise<void> => {
    await relationshipsChanged(queries);
    notifyDone(
      `${t('relationships.removed', { count: deleted })}${delivered ? '' : ` ${t('relationships.notDelivered')}`}`,
    );
  };
  const removeOne = async (r: Relationship): Promise<void> => {
    const { relation, resource_id, resource_type, subject_id, subject_type } = r;
    const text = `${t('relationships.removeText', { name: textOf(r) })}${r.origin === 'import' ? ` ${t('relationships.importRestores')}` : ''}`;
    if (!(await confirmed({ title: t('relationships.remove'), text, action: t('common.remove'), isDangerous: true })))
      return;
    try {
      const body = { resource_type, resource_id, relation, subject_type, subject_id };
      const { deleted, delivered } = answered(await api.DELETE('/api/admin/relationships', { body }));
      await done(deleted, delivered);
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  const removeMatching = async (
    filter: Filter,
    { count, isMore, names }: { count: number; isMore: boolean; names: readonly string[] },
  ): Promise<void> => {
    const isSure = await confirmed({
      title: t('relationships.removeMatching'),
      text: `${t(isMore ? 'relationships.removeManyText' : 'relationships.removeMatchingText', { filter: names.join(', '), count })}${filter.origin === 'manual' ? '' : ` ${t('relationships.importRestoresMany')}`}`,
      action: t('common.remove'),
      isDangerous: true,
      typed: t('relationships.removeWord'),
    });
    if (!isSure) return;
    try {
      const { deleted, delivered } = answered(await api.DELETE('/api/admin/relationships', { body: { filter } }));
      await done(deleted, delivered);
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  return { removeOne, removeMatching };
}
