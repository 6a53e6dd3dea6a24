import { Alert, Badge, Code, Group, Stack, Switch, Table, Text } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import type { TFunction } from 'i18next';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { useConfig } from '../api/config.ts';
import { useSearchState } from '../app/use-search-state.ts';
import { CopyIcon, CopyText } from '../parts/copy.tsx';
import { Empty } from '../parts/empty.tsx';
import { FilterText } from '../parts/filter-text.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { bytesText, durationText, numberText } from '../parts/quantities.ts';
import { currentLanguage } from '../texts/index.ts';
import { LIMITS_EN } from '../texts/limits.en.ts';
import { LIMITS_RU } from '../texts/limits.ru.ts';
import { SETTINGS_RU } from '../texts/settings.ru.ts';

type Setting = Schemas['ConfigSetting'];

const has = (search: string, ...texts: string[]): boolean =>
  texts.some(x => x.toLowerCase().includes(search.toLowerCase()));

/** What a key means, in the language of the page. A newer service may have keys that the pages do not know. */
const aboutOf = (s: Setting): string => (currentLanguage() === 'ru' ? (SETTINGS_RU[s.key] ?? s.about) : s.about);

/** What is configured: each value with where it comes from, and how it would be set. It is changed on the machine. */
export function ConfigTable() {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const { find = '' } = search;
  const isSetOnly = search.set === '1';
  return (
    <Loaded query={useConfig()}>
      {({ file, pending, settings }) => {
        const shown = settings.filter(
          s => has(find, s.key, aboutOf(s), s.env) && (!isSetOnly || s.source !== 'default'),
        );
        return (
          <Stack>
            <Text size="sm" maw="48rem">
              {t('system.configAbout')} {file === null ? t('system.noFile') : t('system.file')}{' '}
              {file !== null && <Code>{file}</Code>}
            </Text>
            <Pending pending={pending} />
            <Group align="flex-end">
              <FilterText
                label={t('system.find')}
                placeholder={t('system.findPlaceholder')}
                value={find}
                onChange={to => setSearch({ find: to })}
                width={260}
              />
              <Switch
                label={t('system.setOnly')}
                checked={isSetOnly}
                onChange={e => setSearch({ set: e.currentTarget.checked ? '1' : undefined })}
                mb={8}
              />
            </Group>
            {shown.length === 0 ? (
              <Empty icon={IconSearch} title={t('common.nothingFound')} />
            ) : (
              <Settings settings={shown} />
            )}
          </Stack>
        );
      }}
    </Loaded>
  );
}

const RELOAD = 'plugin-host reload';

/** What the next reload would do, where the configuration was changed since it was read. */
function Pending({ pending }: { pending: Schemas['PendingConfig'] | null }) {
  const { t } = useTranslation();
  if (pending === null || (pending.problem === null && pending.changed.length === 0)) return null;
  const { changed, problem, restart } = pending;
  if (problem !== null)
    return (
      <Alert color="red" title={t('system.pending.wrongTitle')}>
        <Text size="sm">{t('system.pending.wrong')}</Text>
        <Text size="sm" mt={4} lang="en" style={{ overflowWrap: 'anywhere' }}>
          {problem}
        </Text>
      </Alert>
    );
  return (
    <Alert color="orange" title={t('system.pending.title', { count: changed.length })}>
      <Group gap={6}>
        {changed.map(key => (
          <Code key={key}>{key}</Code>
        ))}
      </Group>
      <Text size="sm" mt={6}>
        {restart.length === 0 ? t('system.pending.reload') : t('system.pending.restart', { keys: restart.join(', ') })}
      </Text>
      {restart.length === 0 && <CopyText value={RELOAD} />}
    </Alert>
  );
}

function Settings({ settings }: { settings: readonly Setting[] }) {
  const { t } = useTranslation();
  return (
    <Table.ScrollContainer tabIndex={0} minWidth={280} type="native">
      <Table verticalSpacing="xs" highlightOnHover aria-label={t('system.tab.config')} className="stacked">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t('system.setting')}</Table.Th>
            <Table.Th>{t('system.value')}</Table.Th>
            <Table.Th>{t('system.source')}</Table.Th>
            <Table.Th className="not-on-tablets">{t('system.env')}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {settings.map(s => (
            <Table.Tr key={s.key}>
              <Table.Td style={{ verticalAlign: 'top' }}>
                <div>
                  <Text ff="monospace" fz="sm" fw={500} style={{ overflowWrap: 'anywhere' }}>
                    {s.key}
                  </Text>
                  <Text size="xs" c="dimmed" maw={420}>
                    {aboutOf(s)}
                  </Text>
                </div>
              </Table.Td>
              <Table.Td style={{ verticalAlign: 'top' }} data-label={t('system.value')}>
                <SettingValue setting={s} />
                {s.source !== 'default' && !s.is_secret && (
                  <Text size="xs" c="dimmed" component="div" style={{ overflowWrap: 'anywhere' }}>
                    {t('system.byDefault', { value: valueText(t, s, s.default) })}
                  </Text>
                )}
              </Table.Td>
              <Table.Td style={{ verticalAlign: 'top' }} data-label={t('system.source')}>
                <Badge
                  variant={s.source === 'default' ? 'outline' : 'light'}
                  color={s.source === 'default' ? 'gray' : 'blue'}
                  tt="none"
                  style={{ minWidth: 'max-content' }}
                >
                  {t(`system.sources.${s.source}`)}
                </Badge>
              </Table.Td>
              <Table.Td className="not-on-tablets" style={{ verticalAlign: 'top' }} data-label={t('system.env')}>
                <Group gap={2} wrap="nowrap">
                  <Text ff="monospace" fz="xs" c="dimmed">
                    {s.env}
                  </Text>
                  <CopyIcon value={s.env} />
                </Group>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function SettingValue({ setting: s }: { setting: Setting }) {
  const { t } = useTranslation();
  const isWord = s.is_secret || isEmpty(s.value);
  return (
    <Text size="sm" c={isWord ? 'dimmed' : undefined} style={{ overflowWrap: 'anywhere' }}>
      {s.is_secret ? t(s.is_set ? 'config.secret' : 'config.unset') : valueText(t, s, s.value)}
    </Text>
  );
}

const isEmpty = (value: Setting['value']): boolean =>
  value === null || value === '' || (Array.isArray(value) && value.length === 0);

/** A value as people read it. */
function valueText(t: TFunction, s: Setting, value: Setting['value']): string {
  if (value === null || isEmpty(value)) return t('system.empty');
  if (typeof value === 'boolean') return t(value ? 'common.yes' : 'common.no');
  if (typeof value === 'number') return numberOf(s, value);
  return Array.isArray(value) ? value.join(', ') : value;
}

const MEBIBYTE = 2 ** 20;

/** A number as it is written in the configuration; with the unit people read where it counts bytes. */
const numberOf = (s: Setting, value: number): string =>
  (/\bbytes\b/.test(s.about) && value >= 1024) || (value > 0 && value % MEBIBYTE === 0)
    ? `${value} (${bytesText(value)})`
    : String(value);

/** Limits that stand fast in a release, in units that people read. */
export function LimitTable() {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const { find = '' } = search;
  return (
    <Loaded query={useConfig()}>
      {({ limits }) => (
        <Stack>
          <Text size="sm" maw="48rem">
            {t('system.limitsAbout')}
          </Text>
          <FilterText
            label={t('system.find')}
            placeholder={t('system.limitPlaceholder')}
            value={find}
            onChange={to => setSearch({ find: to })}
            width={260}
          />
          <Table.ScrollContainer tabIndex={0} minWidth={280} type="native">
            <Table verticalSpacing={6} highlightOnHover aria-label={t('system.tab.limits')} maw={720}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{t('system.limit')}</Table.Th>
                  <Table.Th ta="right">{t('system.value')}</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {Object.entries(limits)
                  .filter(([name]) => has(find, name, wordsOf(name)))
                  .map(([name, value]) => (
                    <Table.Tr key={name}>
                      <Table.Td>
                        <Text size="sm">{wordsOf(name)}</Text>
                        <Text size="xs" c="dimmed" ff="monospace" style={{ overflowWrap: 'anywhere' }}>
                          {name}
                        </Text>
                      </Table.Td>
                      <Table.Td ta="right">{limitText(name, value)}</Table.Td>
                    </Table.Tr>
                  ))}
              </Table.Tbody>
            </Table>
          </Table.ScrollContainer>
        </Stack>
      )}
    </Loaded>
  );
}

const UNIT = /(Bytes|Ms|Seconds)(?=Max|Min|$|[A-Z])/;

/** A newer service may have limits that these pages do not know. */
const wordsOf = (name: string): string => (currentLanguage() === 'ru' ? LIMITS_RU : LIMITS_EN)[name] ?? name;

function limitText(name: string, value: number): string {
  const [, unit] = UNIT.exec(name) ?? [];
  if (unit === 'Bytes') return bytesText(value);
  if (unit === undefined) return numberText(value);
  const ms = unit === 'Ms' ? value : value * 1000;
  return durationText(ms);
}
