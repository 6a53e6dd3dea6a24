import { Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';

const SHOWN = 20;
const SEARCH_DELAY_MS = 200;

/** Plugins with this part in their name or id; of thousands, twenty. */
export function useFoundPlugins(text: string) {
  const [search] = useDebouncedValue(text.trim(), SEARCH_DELAY_MS);
  return useQuery({
    queryKey: ['plugins', 'picker', search],
    queryFn: async () =>
      answered(
        await api.GET('/api/admin/plugins', {
          params: { query: { limit: SHOWN, ...(search === '' ? {} : { search }) } },
        }),
      ),
  });
}

/** The only plugin of a service that has one, which need not be chosen. */
export function onlyOne(
  list: { items: ReadonlyArray<{ id: string; state: string }>; next_cursor: string | null } | undefined,
) {
  const [first, second] = list?.items.filter(p => p.state !== 'uploaded') ?? [];
  return second === undefined && list?.next_cursor === null ? first?.id : undefined;
}

/** Finds an installed plugin. With `without` those already chosen are left out. */
export function PluginPicker(props: {
  value: string | null;
  onChange: (id: string | null) => void;
  label: string;
  placeholder?: string;
  without?: readonly string[];
  error?: ReactNode;
}) {
  const { error, label, onChange, placeholder, value, without = [] } = props;
  const { t } = useTranslation();
  const [text, setText] = useState('');
  // The text of what is chosen is not a search.
  const isChosen = value !== null && (text === value || text.endsWith(` · ${value}`));
  const found = useFoundPlugins(isChosen ? '' : text);
  const plugins = (found.data?.items ?? []).filter(p => p.state !== 'uploaded' && !without.includes(p.id));
  const data = plugins.map(p => ({ value: p.id, label: p.name === null ? p.id : `${p.name} · ${p.id}` }));
  return (
    <Select
      label={label}
      placeholder={placeholder}
      searchable
      clearable={value !== null}
      data={value === null || data.some(d => d.value === value) ? data : [...data, { value, label: value }]}
      // What matches is what the service has found.
      filter={({ options }) => options}
      value={value}
      onChange={id => {
        // What is taken and not kept here makes room for the next.
        setText('');
        onChange(id);
      }}
      searchValue={text}
      onSearchChange={setText}
      error={error}
      nothingFoundMessage={found.isFetching ? t('common.loading') : t('common.nothingFound')}
    />
  );
}
