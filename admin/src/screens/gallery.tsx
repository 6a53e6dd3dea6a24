import { Badge, Button, Card, Group, SimpleGrid, Text } from '@mantine/core';
import { IconArrowRight, IconPuzzle } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import i18next from 'i18next';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { May } from '../app/may.tsx';
import { useSearchState } from '../app/use-search-state.ts';
import { Empty } from '../parts/empty.tsx';
import { LinkAnchor, PluginCrumbs } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { useIsShown } from '../parts/use-is-shown.ts';

type Entry = Schemas['GalleryPlugin'];

/** Plugins that come with the service: one click builds one and leads to its review. */
export default function Gallery() {
  const { t } = useTranslation();
  const [{ plugin }] = useSearchState();
  const query = useQuery({
    queryKey: ['gallery'],
    queryFn: async () => answered(await api.GET('/api/admin/gallery')),
  });
  return (
    <Page title={t('gallery.title')} about={t('gallery.about')} crumbs={<PluginCrumbs />}>
      <Loaded query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon={IconPuzzle} title={t('gallery.none')} />
          ) : (
            <SimpleGrid cols={{ base: 1, sm: 2 }}>
              {items
                .toSorted((a, b) => Number(b.id === plugin) - Number(a.id === plugin))
                .map(p => (
                  <Plugin key={p.id} plugin={p} />
                ))}
            </SimpleGrid>
          )
        }
      </Loaded>
    </Page>
  );
}

/** What a plugin is called and is for, in the language of the page. A newer service may have plugins that the pages do not know. */
function wordsOf({ id, name, summary }: Entry): { name: string; summary: string } {
  const key = `gallery.plugin.${id}`;
  if (!i18next.exists(`${key}.name`)) return { name, summary };
  return {
    name: i18next.t(`${key}.name` as 'gallery.plugin.survey.name'),
    summary: i18next.t(`${key}.summary` as 'gallery.plugin.survey.summary'),
  };
}

function Plugin({ plugin: p }: { plugin: Entry }) {
  const { t } = useTranslation();
  const go = useNavigate();
  const [isBuilding, setBuilding] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);
  const { name, summary } = wordsOf(p);
  const isShown = useIsShown();
  const install = async (): Promise<void> => {
    setBuilding(true);
    setProblem(null);
    try {
      const { wasm_key: key } = answered(await api.POST('/api/admin/gallery/{id}', { params: { path: { id: p.id } } }));
      if (isShown()) void go({ to: '/admin/plugins/upload', search: { id: p.id, key, step: 'review' } });
    } catch (error) {
      setProblem(error);
    } finally {
      setBuilding(false);
    }
  };
  return (
    <Card withBorder component="article" aria-label={name}>
      <Group justify="space-between" wrap="nowrap" align="flex-start">
        <Text component="h2" fz="md" fw={600} m={0}>
          {name}
        </Text>
        <Badge variant="default" tt="none" style={{ flexShrink: 0 }}>
          {p.language}
        </Badge>
      </Group>
      <Text size="sm" mt={4} mb="sm" style={{ flex: 1 }}>
        {summary}
      </Text>
      <ProblemAlert error={problem} />
      <Group justify="space-between">
        {p.installed_version === null ? (
          <span />
        ) : (
          <LinkAnchor to="/admin/plugins/$id" params={{ id: p.id }} size="sm">
            {t('gallery.installed', { version: p.installed_version })}
          </LinkAnchor>
        )}
        <May need="plugins:deploy" plugin={p.id} isInline>
          <Button
            size="xs"
            variant={p.installed_version === null ? 'light' : 'default'}
            rightSection={<IconArrowRight size={14} aria-hidden />}
            loading={isBuilding}
            onClick={() => void install()}
            aria-label={t('gallery.installOne', { name })}
          >
            {t('gallery.install')}
          </Button>
        </May>
      </Group>
    </Card>
  );
}
