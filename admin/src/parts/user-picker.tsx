import { Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { useRefusal } from '../app/may.tsx';

const SHOWN = 20;
const SEARCH_DELAY_MS = 200;

const labelOf = (u: Schemas['User']): string => `${u.display_name} · ${u.external_id ?? `#${u.id}`}`;

/** Finds a person by a part of the name or email, or by an id: of thirty thousand, twenty are shown. */
export function UserPicker(props: {
  value: number | null;
  onChange: (user: number | null) => void;
  label: string;
  required?: boolean;
  error?: ReactNode;
}) {
  const { error, label, onChange, required = false, value } = props;
  const { t } = useTranslation();
  const refusal = useRefusal()('people');
  const [text, setText] = useState('');
  const [search] = useDebouncedValue(text, SEARCH_DELAY_MS);
  const chosen = useQuery({
    queryKey: ['users', 'one', value],
    queryFn: async () => answered(await api.GET('/api/admin/users/{user}', { params: { path: { user: value ?? 0 } } })),
    enabled: value !== null && refusal === null,
  });
  const isChosenText = chosen.data !== undefined && search === labelOf(chosen.data);
  const found = useQuery({
    queryKey: ['users', 'picker', isChosenText ? '' : search],
    queryFn: async () =>
      answered(
        await api.GET('/api/admin/users', {
          params: { query: { limit: SHOWN, ...(search === '' || isChosenText ? {} : { search }) } },
        }),
      ),
    enabled: refusal === null,
  });
  const matching = new Set((found.data?.items ?? []).map(u => String(u.id)));
  const isFound = text === search && !found.isFetching;
  const isChosen = chosen.data !== undefined && text === labelOf(chosen.data);
  const hasText = ({ label }: { label: string }): boolean =>
    isChosen || label.toLocaleLowerCase().includes(text.trim().toLocaleLowerCase());
  const users = [...(found.data?.items ?? []), ...(chosen.data === undefined ? [] : [chosen.data])];
  const data = [...new Map(users.map(u => [u.id, { value: String(u.id), label: labelOf(u) }])).values()];
  // What matches is what the service has found, and not the person chosen before. Before it answers, no person of another name is
  // offered to a hand that presses Enter at once.
  const offered = new Set(data.filter(o => matching.has(o.value) && (isFound || hasText(o))).map(o => o.value));
  return (
    <Select
      label={label}
      disabled={refusal !== null}
      description={refusal}
      placeholder={t('userPicker.search')}
      searchable
      clearable
      clearButtonProps={{ 'aria-label': t('common.clear') }}
      required={required}
      error={error}
      data={data}
      filter={({ options }) => options.filter(o => 'value' in o && offered.has(o.value))}
      allowDeselect={false}
      // The first is selected when the text changes, and when it is found only later.
      selectFirstOptionOnChange={offered.size > 0}
      value={value === null ? null : String(value)}
      onChange={v => onChange(v === null ? null : Number(v))}
      searchValue={text}
      onSearchChange={setText}
      nothingFoundMessage={found.isFetching ? t('common.loading') : t('common.nothingFound')}
    />
  );
}
