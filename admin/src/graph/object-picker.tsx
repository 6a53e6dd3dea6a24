import { Autocomplete, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { useObjectNames } from './object-names.ts';

const SHOWN = 20;
const SEARCH_DELAY_MS = 200;

/**
 * Finds an object or a person by name or id. Its value is the id, which may also be typed: the graph may hold objects that have no name.
 * `onChange` tells of every letter, `onChosen` of an id that is meant: picked, or left with Enter or Tab.
 */
export function ObjectPicker(props: {
  type: string;
  value: string;
  label: string;
  onChange?: (id: string) => void;
  onChosen?: (id: string) => void;
  error?: string | undefined;
  required?: boolean;
  disabled?: boolean;
}) {
  const { disabled = false, error, label, onChange, onChosen, required = false, type, value } = props;
  const { t } = useTranslation();
  const [last, setTyped] = useState<string | null>(null);
  // Another value than the one typed was set from outside: what is typed is over.
  const typed = onChange === undefined || last?.trim() === value ? last : null;
  const text = typed ?? value;
  const [search] = useDebouncedValue(text, SEARCH_DELAY_MS);
  const found = useQuery({
    queryKey: ['graph', 'objects', type, search],
    queryFn: async () =>
      answered(await api.GET('/api/admin/relationships/objects', { params: { query: { type, search, limit: SHOWN } } }))
        .items,
    enabled: type !== '' && !disabled,
  });
  const nameOf = useObjectNames(type !== '' && value !== '' ? [{ type, id: value }] : []);
  const names = new Map((found.data ?? []).map(o => [o.id, o.name]));
  const name = typed === null && value !== '' ? nameOf({ type, id: value }) : null;
  // The kit tells of a picked option twice at once: as an option, and then as text.
  const picked = useRef<string | null>(null);
  const choose = (id: string): void => {
    picked.current = id;
    queueMicrotask(() => {
      picked.current = null;
    });
    setTyped(null);
    onChange?.(id);
    if (id !== value || onChange !== undefined) onChosen?.(id);
  };
  return (
    <Autocomplete
      label={label}
      placeholder={t('userPicker.search')}
      // Its room is kept, so that nothing moves under the pointer when a name comes.
      description={name ?? '\u00a0'}
      inputWrapperOrder={['label', 'input', 'description', 'error']}
      error={error}
      required={required}
      disabled={disabled || type === ''}
      data={[...names.keys()]}
      // What matches is what the service has found.
      filter={({ options }) => options}
      renderOption={({ option }) => (
        <div>
          <Text size="sm">{names.get(option.value) ?? option.value}</Text>
          <Text size="xs" c="dimmed" ff="monospace">
            {option.value}
          </Text>
        </div>
      )}
      value={text}
      onChange={next => {
        if (next === picked.current) return;
        setTyped(next);
        onChange?.(next.trim());
      }}
      onOptionSubmit={choose}
      onBlur={() => {
        if (typed !== null) choose(typed.trim());
      }}
      onKeyDown={event => {
        if (event.key === 'Enter' && typed !== null && onChange === undefined) choose(typed.trim());
      }}
      clearable
      clearButtonProps={{ 'aria-label': t('common.remove') }}
      onClear={() => choose('')}
    />
  );
}
