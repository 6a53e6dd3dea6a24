import '@mantine/spotlight/styles.css';
import { Spotlight, spotlight } from '@mantine/spotlight';
import {
  IconBooks,
  type IconProps,
  IconPuzzle,
  IconSearch,
  IconUpload,
  IconUser,
  IconUserCircle,
} from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FunctionComponent, type KeyboardEvent, useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { useRefusal } from './may.tsx';
import { useNavigation } from './navigation.ts';

export const open = spotlight.open;

/** Eight plugins, eight people, and what there is of screens. */
const HITS_MAX = 40;
const FOUND = /^(?:plugin|user) /;

/** Whether a row is shown: screens by their names. */
const isHit = (row: object, words: string): boolean =>
  'id' in row &&
  'label' in row &&
  (FOUND.test(String(row.id)) || String(row.label).toLowerCase().includes(words.trim().toLowerCase()));

/** ⌘K: every screen, plugins and people by their names. */
export default function Palette() {
  const { t } = useTranslation();
  const go = useNavigate();
  const [query, setQuery] = useState('');
  const plugins = useQuery({
    queryKey: ['plugins', 'palette', query],
    queryFn: async () =>
      answered(await api.GET('/api/admin/plugins', { params: { query: { limit: 8, search: query } } })),
    enabled: query.trim() !== '',
  });
  const mayReadPeople = useRefusal()('people') === null;
  const people = useQuery({
    queryKey: ['people', 'palette', query],
    queryFn: async () =>
      answered(await api.GET('/api/admin/users', { params: { query: { limit: 8, search: query } } })),
    enabled: mayReadPeople && query.trim() !== '',
  });
  const enter = useFirstHit(query, [plugins.data, people.data], plugins.isFetching || people.isFetching);
  const screen = (Sign: FunctionComponent<IconProps>, label: string, to: string) => ({
    id: to,
    label,
    leftSection: <Sign size={18} aria-hidden />,
    onClick: () => void go({ to }),
  });
  const screens = [
    ...useNavigation()
      .flatMap(g => g.items)
      .map(({ icon, label, to }) => screen(icon, t(label), to)),
    screen(IconUpload, t('plugins.upload'), '/admin/plugins/upload'),
    screen(IconBooks, t('gallery.title'), '/admin/plugins/gallery'),
    screen(IconUserCircle, t('shell.account'), '/admin/account'),
  ];
  return (
    <Spotlight
      shortcut={null}
      attributes={{ content: { 'aria-label': t('shell.search') } }}
      query={query}
      onQueryChange={setQuery}
      nothingFound={t('palette.nothing')}
      searchProps={{
        leftSection: <IconSearch size={18} />,
        placeholder: t('palette.placeholder'),
        'aria-label': t('shell.search'),
        onKeyDown: enter,
      }}
      highlightQuery
      limit={HITS_MAX}
      // What the service finds, it may have found by what is not shown, such as a mail address.
      filter={(words, all) => (Array.isArray(all) ? all.filter(a => isHit(a, words)) : [])}
      actions={[
        ...screens,
        ...(plugins.data?.items ?? []).map(p => ({
          id: `plugin ${p.id}`,
          label: p.name ?? p.id,
          description: p.id,
          leftSection: <IconPuzzle size={18} aria-hidden />,
          onClick: () => void go({ to: '/admin/plugins/$id', params: { id: p.id } }),
        })),
        ...(people.data?.items ?? []).map(u => ({
          id: `user ${u.id}`,
          label: u.display_name,
          description: u.external_id ?? `#${u.id}`,
          leftSection: <IconUser size={18} aria-hidden />,
          onClick: () => void go({ to: '/admin/people/$user', params: { user: String(u.id) } }),
        })),
      ]}
    />
  );
}

const HIT = '.mantine-Spotlight-action';
const firstHit = (): HTMLElement | null => document.querySelector<HTMLElement>(HIT);
const hasChoice = (): boolean => document.querySelector(`${HIT}[data-selected]`) !== null;

/**
 * Enter opens the first hit. The kit chooses it while one types, and so never one that the service finds a moment later: it is chosen
 * when it comes, and opened then if Enter was pressed before.
 *
 * @param found what the service has found so far
 */
function useFirstHit(query: string, found: readonly unknown[], isFetching: boolean): (event: KeyboardEvent) => void {
  const wanted = useRef<string | null>(null);
  const [plugins, people] = found;
  useEffect(() => {
    if (plugins === undefined && people === undefined) return;
    const first = firstHit();
    if (first === null || hasChoice()) return;
    first.setAttribute('data-selected', 'true');
    if (wanted.current !== query) return;
    wanted.current = null;
    first.click();
  }, [plugins, people, query]);
  return event => {
    if (event.nativeEvent.code !== 'Enter' && event.nativeEvent.code !== 'NumpadEnter') return;
    if (!hasChoice() && isFetching) wanted.current = query;
  };
}
