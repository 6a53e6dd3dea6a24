import { Box, Stack, Table, Text } from '@mantine/core';
import { IconPuzzle } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { useSearchState } from '../app/use-search-state.ts';
import { Empty } from '../parts/empty.tsx';
import { LinkAnchor, LinkButton } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { onlyOne, PluginPicker, useFoundPlugins } from '../parts/plugin-picker.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { becauseText } from './why-steps.ts';

type Explanation = Schemas['AccessExplanation'];

/** Asks for every trigger and command of a plugin whether the person may call it, one after another. */
async function askAll(user: number, plugin: string): Promise<Explanation[]> {
  const { triggers } = answered(await api.GET('/api/admin/plugins/{id}', { params: { path: { id: plugin } } }));
  const answers: Explanation[] = [];
  for (const x of triggers) {
    const what = x.type === 'http' ? { trigger: x.name } : { command: x.name };
    answers.push(answered(await api.POST('/api/admin/access/explain', { body: { user, plugin, ...what } })));
  }
  return answers;
}

/** What a person may call of a plugin, with the step that decides where they may not. */
export default function PersonMay({ person }: { person: Schemas['User'] }) {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const plugins = useFoundPlugins('');
  const plugin = search.plugin ?? onlyOne(plugins.data);
  const query = useQuery({
    queryKey: ['why', 'all', person.id, plugin],
    queryFn: () => askAll(person.id, plugin ?? ''),
    enabled: plugin !== undefined,
  });
  if (plugins.data?.items.length === 0)
    return (
      <Empty
        icon={IconPuzzle}
        title={t('plugins.emptyTitle')}
        text={t('personMay.noPlugin')}
        action={<LinkButton to="/admin/plugins/upload">{t('plugins.upload')}</LinkButton>}
      />
    );
  return (
    <Stack>
      <Box maw={360}>
        <PluginPicker
          label={t('personMay.plugin')}
          value={plugin ?? null}
          onChange={p => setSearch({ plugin: p ?? undefined })}
        />
      </Box>
      <Text size="sm" c="dimmed">
        {t(plugin === undefined ? 'personMay.choose' : 'personMay.about')}
      </Text>
      {plugin !== undefined && (
        <Loaded query={query}>
          {answers =>
            answers.length === 0 ? (
              <Text size="sm">{t('personMay.empty')}</Text>
            ) : (
              <Answers user={person.id} answers={answers} />
            )
          }
        </Loaded>
      )}
    </Stack>
  );
}

function Answers({ answers, user }: { user: number; answers: readonly Explanation[] }) {
  const { t } = useTranslation();
  return (
    <Table.ScrollContainer tabIndex={0} minWidth={280} type="native">
      <Table verticalSpacing="xs" aria-label={t('person.tab.may')}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t('personMay.what')}</Table.Th>
            <Table.Th />
            <Table.Th visibleFrom="sm">{t('personMay.reason')}</Table.Th>
            <Table.Th />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {answers.map(a => {
            const decides = a.steps.find(s => s.holds === false);
            return (
              <Table.Tr key={a.trigger ?? `/${a.command}`}>
                <Table.Td fw={500}>{a.trigger ?? `/${a.command}`}</Table.Td>
                <Table.Td>
                  <StateBadge
                    kind={a.allowed ? 'good' : 'bad'}
                    label={t(a.allowed ? 'personMay.yes' : 'personMay.no')}
                  />
                </Table.Td>
                <Table.Td visibleFrom="sm">{decides === undefined ? '–' : becauseText(decides, t)}</Table.Td>
                <Table.Td ta="right">
                  <LinkAnchor
                    to="/admin/why"
                    search={{ user: String(user), plugin: a.plugin, trigger: a.trigger, command: a.command }}
                    size="sm"
                  >
                    {t('nav.why')}
                  </LinkAnchor>
                </Table.Td>
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
