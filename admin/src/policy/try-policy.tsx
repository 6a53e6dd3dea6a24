import {
  Accordion,
  Button,
  Card,
  Checkbox,
  Group,
  Select,
  SimpleGrid,
  Stack,
  TagsInput,
  Text,
  TextInput,
  Title,
} from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { ProblemAlert } from '../parts/problem.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { UserPicker } from '../parts/user-picker.tsx';
import { GraphChecks } from './graph-checks.tsx';
import { PolicyParts } from './policy-parts.tsx';

type Trial = Schemas['PolicyTrial'];

const CHOICES = {
  locale: ['ru', 'en'],
  nationality_type: ['domestic', 'foreign'],
  funding_type: ['budget', 'contract'],
  education_form: ['full_time', 'part_time', 'remote'],
  primary_channel: ['TELEGRAM', 'VK'],
} as const;
type Choice = keyof typeof CHOICES;
/** What replaces the user's own; null where nothing does, an empty list for none at all. */
type Override = { roles: string[] | null; groups: string[] | null; external_id: string | null } & Record<
  Choice,
  string | null
>;
const NONE: Override = {
  roles: null,
  groups: null,
  external_id: null,
  locale: null,
  nationality_type: null,
  funding_type: null,
  education_form: null,
  primary_channel: null,
};

const KIND = { allowed: 'good', denied: 'bad', failed: 'bad', unavailable: 'warn' } as const;

/** A value from the list, or nothing; what stands in the list is what the API takes. */
const chosen = <const L extends readonly string[]>(list: L, value: string | null): L[number] | undefined =>
  list.find(x => x === value);

/** What a policy decides for a user, part by part, with attributes that can be changed for the trial. */
export function TryPolicy({ expression, isBroken }: { expression: string; isBroken: boolean }) {
  const { t } = useTranslation();
  const [user, setUser] = useState<number | null>(null);
  const [override, setOverride] = useState(NONE);
  /** What came, and what was asked: it says nothing of another policy or person. */
  const [tried, setTried] = useState<{ of: string; trial: Trial } | null>(null);
  const asked = JSON.stringify([expression, user, override]);
  const [error, setError] = useState<unknown>(null);
  const [isTrying, setTrying] = useState(false);
  const run = async (): Promise<void> => {
    if (user === null) return;
    setTrying(true);
    setError(null);
    const attributes = {
      ...(override.roles === null ? {} : { roles: override.roles }),
      ...(override.groups === null ? {} : { groups: override.groups }),
      ...(override.external_id === null ? {} : { external_id: override.external_id }),
      locale: chosen(CHOICES.locale, override.locale),
      nationality_type: chosen(CHOICES.nationality_type, override.nationality_type),
      funding_type: chosen(CHOICES.funding_type, override.funding_type),
      education_form: chosen(CHOICES.education_form, override.education_form),
      primary_channel: chosen(CHOICES.primary_channel, override.primary_channel),
    };
    try {
      const trial = answered(await api.POST('/api/admin/policies/try', { body: { expression, user, attributes } }));
      setTried({ of: asked, trial });
    } catch (problem) {
      setTried(null);
      setError(problem);
    } finally {
      setTrying(false);
    }
  };
  return (
    <Card withBorder>
      <Stack gap="sm">
        <Title order={3} size="h5">
          {t('tryPolicy.title')}
        </Title>
        <UserPicker value={user} onChange={setUser} label={t('tryPolicy.user')} />
        <Accordion variant="contained" chevronPosition="left">
          <Accordion.Item value="override">
            <Accordion.Control>{t('tryPolicy.override')}</Accordion.Control>
            <Accordion.Panel>
              <Stack gap="xs">
                {(['roles', 'groups'] as const).map(list => (
                  <div key={list}>
                    <TagsInput
                      label={`user.${list}`}
                      placeholder={override[list] === null ? t('tryPolicy.own') : undefined}
                      value={override[list] ?? []}
                      onChange={to => setOverride({ ...override, [list]: to.length === 0 ? null : to })}
                    />
                    <Checkbox
                      mt={6}
                      size="xs"
                      label={t(`tryPolicy.no.${list}`)}
                      checked={override[list]?.length === 0}
                      onChange={e => setOverride({ ...override, [list]: e.currentTarget.checked ? [] : null })}
                    />
                  </div>
                ))}
                <TextInput
                  label="user.external_id"
                  placeholder={t('tryPolicy.own')}
                  maxLength={250}
                  value={override.external_id ?? ''}
                  onChange={e => setOverride({ ...override, external_id: e.currentTarget.value || null })}
                />
                <SimpleGrid cols={{ base: 1, xs: 2 }}>
                  {(['education_form', 'funding_type'] as const).map(a => (
                    <Select
                      key={a}
                      label={`user.${a}`}
                      data={CHOICES[a]}
                      value={override[a]}
                      onChange={v => setOverride({ ...override, [a]: v })}
                      clearable
                      clearButtonProps={{ 'aria-label': t('common.clear') }}
                      placeholder={t('tryPolicy.own')}
                    />
                  ))}
                </SimpleGrid>
                <SimpleGrid cols={{ base: 1, xs: 2 }}>
                  {(['nationality_type', 'locale', 'primary_channel'] as const).map(a => (
                    <Select
                      key={a}
                      label={`user.${a}`}
                      data={CHOICES[a]}
                      value={override[a]}
                      onChange={v => setOverride({ ...override, [a]: v })}
                      clearable
                      clearButtonProps={{ 'aria-label': t('common.clear') }}
                      placeholder={t('tryPolicy.own')}
                    />
                  ))}
                </SimpleGrid>
              </Stack>
            </Accordion.Panel>
          </Accordion.Item>
        </Accordion>
        <Button
          onClick={run}
          loading={isTrying}
          disabled={user === null || isBroken || expression.trim() === ''}
          variant="light"
        >
          {t('tryPolicy.run')}
        </Button>
        <ProblemAlert error={error} />
        {tried?.of === asked && <TrialResult trial={tried.trial} />}
      </Stack>
    </Card>
  );
}

function TrialResult({ trial }: { trial: Trial }) {
  const { t } = useTranslation();
  return (
    <Stack gap="sm" role="status">
      <Group gap="xs">
        <StateBadge kind={KIND[trial.verdict]} label={t(`tryPolicy.verdict.${trial.verdict}`)} />
        {trial.reason !== null && (
          <Text size="sm" lang="en">
            {trial.reason}
          </Text>
        )}
      </Group>
      <PolicyParts parts={trial.parts} />
      {trial.graph_checks.length > 0 && (
        <div>
          <Text size="sm" fw={600}>
            {t('tryPolicy.graph')}
          </Text>
          <GraphChecks checks={trial.graph_checks} />
        </div>
      )}
      <Text size="xs" c="dimmed">
        {t('tryPolicy.seen', {
          roles: trial.user.roles.join(', ') || '–',
          groups: trial.user.groups?.join(', ') || '–',
        })}
      </Text>
    </Stack>
  );
}
