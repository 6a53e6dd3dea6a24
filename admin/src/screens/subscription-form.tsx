import { Stack, TagsInput, TextInput } from '@mantine/core';
import type { UseFormReturnType } from '@mantine/form';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';

export type SubscriptionValues = { name: string; url: string; types: string[]; plugins: string[] };

const PLUGINS_SHOWN = 100;

/** What a subscription says: where to, and which events of which plugins. */
export function SubscriptionFields({ form }: { form: UseFormReturnType<SubscriptionValues> }) {
  const { t } = useTranslation();
  const plugins = useQuery({
    queryKey: ['plugins', 'ids'],
    queryFn: async () => answered(await api.GET('/api/admin/plugins', { params: { query: { limit: PLUGINS_SHOWN } } })),
  });
  return (
    <Stack>
      <TextInput
        label={t('events.name')}
        description={t('events.nameAbout')}
        required
        autoComplete="off"
        {...form.getInputProps('name')}
      />
      <TextInput
        label={t('events.url')}
        description={t('events.urlAbout')}
        placeholder="https://timetable.uni.example/events"
        required
        inputMode="url"
        autoComplete="off"
        {...form.getInputProps('url')}
      />
      <TagsInput
        label={t('events.types')}
        description={t('events.typesAbout')}
        placeholder={form.values.types.length === 0 ? t('events.allTypes') : undefined}
        clearable
        clearButtonProps={{ 'aria-label': t('common.clear') }}
        splitChars={[',', ' ']}
        {...form.getInputProps('types')}
      />
      <TagsInput
        label={t('events.plugins')}
        description={t('events.pluginsAbout')}
        placeholder={form.values.plugins.length === 0 ? t('events.allPlugins') : undefined}
        data={(plugins.data?.items ?? []).map(p => p.id)}
        clearable
        clearButtonProps={{ 'aria-label': t('common.clear') }}
        splitChars={[',', ' ']}
        {...form.getInputProps('plugins')}
      />
    </Stack>
  );
}

/** A subscription that is still to be filled in. */
export const EMPTY_SUBSCRIPTION: SubscriptionValues = { name: '', url: '', types: [], plugins: [] };
