import { Alert, Code, Group, Select, SimpleGrid, Stack, Text, Timeline } from '@mantine/core';
import { IconCheck, IconMinus, IconPuzzle, IconX } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { type SearchState, useSearchState } from '../app/use-search-state.ts';
import { Empty } from '../parts/empty.tsx';
import { LinkButton } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { onlyOne, PluginPicker } from '../parts/plugin-picker.tsx';
import { SuspensionCause } from '../parts/suspension-cause.tsx';
import { UserPicker } from '../parts/user-picker.tsx';
import { falsePartsOf } from '../policy/false-parts.ts';
import { GraphChecks } from '../policy/graph-checks.tsx';
import { PolicyParts } from '../policy/policy-parts.tsx';
import { WhoElse } from '../policy/who-else.tsx';
import { Section } from './review.tsx';
import { STEP_NAME, type Step, stepText } from './why-steps.ts';

/** May this person call this trigger or command, why, and what would have to change. */
export default function Why() {
  const { t } = useTranslation();
  const [search, setSearch] = useSearchState();
  const plugins = useQuery({
    queryKey: ['plugins', 'choice'],
    queryFn: async () => answered(await api.GET('/api/admin/plugins', { params: { query: { limit: 20 } } })),
  });
  const plugin = search.plugin ?? onlyOne(plugins.data);
  const chosen = useQuery({
    queryKey: ['plugins', plugin],
    queryFn: async () => answered(await api.GET('/api/admin/plugins/{id}', { params: { path: { id: plugin ?? '' } } })),
    enabled: plugin !== undefined,
  });
  const { command, trigger } = calledOf(search, chosen.data?.triggers ?? []);
  const userId = search.user === undefined ? null : Number(search.user);
  const isAsked =
    userId !== null && plugin !== undefined && !chosen.isPending && (trigger !== undefined || command !== undefined);
  const answer = useQuery({
    queryKey: ['why', userId, plugin, trigger, command],
    queryFn: async () =>
      answered(
        await api.POST('/api/admin/access/explain', {
          body: { user: userId ?? 0, plugin: plugin ?? '', ...(trigger === undefined ? { command } : { trigger }) },
        }),
      ),
    enabled: isAsked,
    staleTime: 0,
  });
  const what = trigger !== undefined ? `t ${trigger}` : command !== undefined ? `c ${command}` : null;
  return (
    <Page title={t('why.title')} about={t('why.about')}>
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <UserPicker
          label={t('why.user')}
          value={userId}
          onChange={u => setSearch({ user: u === null ? undefined : String(u) })}
        />
        <PluginPicker
          label={t('why.plugin')}
          value={plugin ?? null}
          onChange={p => setSearch({ plugin: p ?? undefined, trigger: undefined, command: undefined })}
        />
        <Select
          label={t('why.what')}
          data={(chosen.data?.triggers ?? []).map(x =>
            x.type === 'http' ? { value: `t ${x.name}`, label: x.name } : { value: `c ${x.name}`, label: `/${x.name}` },
          )}
          value={what}
          onChange={v =>
            setSearch({
              trigger: v?.startsWith('t ') ? v.slice(2) : undefined,
              command: v?.startsWith('c ') ? v.slice(2) : undefined,
            })
          }
          disabled={plugin === undefined}
        />
      </SimpleGrid>
      {isAsked ? (
        <Loaded query={answer}>{a => <Explanation answer={a} />}</Loaded>
      ) : plugins.data?.items.length === 0 ? (
        <Empty
          icon={IconPuzzle}
          title={t('plugins.emptyTitle')}
          text={t('why.noPlugin')}
          action={<LinkButton to="/admin/plugins/upload">{t('plugins.upload')}</LinkButton>}
        />
      ) : (
        <Text c="dimmed">{t('why.choose')}</Text>
      )}
    </Page>
  );
}

/** What is asked about: what the address names, or else the first that the plugin has. */
function calledOf(
  search: SearchState,
  triggers: Schemas['Plugin']['triggers'],
): { trigger?: string | undefined; command?: string | undefined } {
  const [first] = triggers;
  const { trigger: named } = search;
  // An execution names what it ran, and not whether that is a trigger or a command.
  const isOf = (type: 'http' | 'messenger'): boolean => triggers.some(x => x.type === type && x.name === named);
  if (named !== undefined && isOf('messenger') && !isOf('http')) return { command: named };
  if (search.trigger !== undefined || search.command !== undefined || first === undefined) return search;
  return first.type === 'http' ? { trigger: first.name } : { command: first.name };
}

/** What the service found at a step, where the name of the step does not say it. */
function Found({ answer: a, step: s }: { answer: Schemas['AccessExplanation']; step: Step }) {
  const { t } = useTranslation();
  const name = STEP_NAME[s.code];
  if (s.holds === null) return null;
  if (name === 'policy' && a.policy !== null) {
    const { expression, reason, verdict } = a.policy;
    return (
      <Stack gap={4} align="flex-start">
        <Code>{expression}</Code>
        <Text size="sm">
          {t(`why.verdict.${verdict}`)}
          {reason !== null && (
            <>
              {' '}
              <span lang="en">{reason}</span>
            </>
          )}
        </Text>
      </Stack>
    );
  }
  if (name === 'running' && a.suspension !== null)
    return (
      <Text size="sm" component="div">
        <SuspensionCause suspension={a.suspension} />
      </Text>
    );
  // These are names; the others are said by their title.
  return name === 'exists' && s.holds ? (
    <Text size="sm" lang="en">
      {s.detail}
    </Text>
  ) : null;
}

/** The tab of the plugin where a step is set; undefined: the page of the trigger or command has it. */
const TAB_OF: Readonly<Partial<Record<string, string>>> = {
  installed: 'versions',
  exists: 'access',
  pluginOn: 'overview',
  running: 'overview',
  on: 'access',
  users: 'access',
};

/** Where what decides is set. */
function Settings({ answer: a, failing }: { answer: Schemas['AccessExplanation']; failing: string }) {
  const { t } = useTranslation();
  const look = { size: 'xs', variant: 'default' } as const;
  const tab = TAB_OF[failing];
  if (tab !== undefined)
    return (
      <LinkButton
        {...look}
        to="/admin/plugins/$id"
        params={{ id: a.plugin }}
        search={tab === 'overview' ? {} : { tab }}
      >
        {t('why.toPlugin')}
      </LinkButton>
    );
  if (a.trigger !== undefined)
    return (
      <LinkButton {...look} to="/admin/plugins/$id/triggers/$name" params={{ id: a.plugin, name: a.trigger }}>
        {t('why.toSettings')}
      </LinkButton>
    );
  return (
    <LinkButton {...look} to="/admin/plugins/$id/commands/$name" params={{ id: a.plugin, name: a.command ?? '' }}>
      {t('why.toSettings')}
    </LinkButton>
  );
}

function Explanation({ answer: a }: { answer: Schemas['AccessExplanation'] }) {
  const { t } = useTranslation();
  const decides = a.steps.find(s => s.holds === false);
  const trial = useQuery({
    queryKey: ['why', 'parts', a.user.id, a.policy?.expression],
    queryFn: async () =>
      answered(
        await api.POST('/api/admin/policies/try', {
          body: { expression: a.policy?.expression ?? '', user: a.user.id },
        }),
      ),
    enabled: a.policy !== null && a.policy.verdict !== 'unavailable',
    staleTime: 0,
  });
  const parts = trial.data?.parts ?? [];
  const isFalse = a.policy?.verdict === 'denied' ? falsePartsOf(parts) : [];
  const failing = decides === undefined ? undefined : STEP_NAME[decides.code];
  return (
    <Stack gap="lg">
      <Alert
        color={a.allowed ? 'teal' : 'red'}
        icon={a.allowed ? <IconCheck aria-hidden /> : <IconX aria-hidden />}
        title={t(a.allowed ? 'why.yes' : 'why.no', {
          user: a.user.display_name,
          what: a.trigger ?? `/${a.command}`,
          status: a.status,
        })}
      >
        {failing !== undefined && (
          <Stack gap="xs" align="flex-start">
            <Text size="sm">{t(`why.todo.${failing}`)}</Text>
            {isFalse.length > 0 && (
              <Group gap="xs">
                <Text size="sm">{t('why.isFalse', { count: isFalse.length, user: a.user.display_name })}</Text>
                {isFalse.map(p => (
                  <Code key={p.position.start} style={{ overflowWrap: 'anywhere' }}>
                    {p.expression}
                  </Code>
                ))}
              </Group>
            )}
            <Group gap="xs">
              {(failing === 'policy' || failing === 'roles') && (
                <LinkButton
                  size="xs"
                  variant="default"
                  to="/admin/people/$user"
                  params={{ user: String(a.user.id) }}
                  search={{ tab: 'roles' }}
                >
                  {t('why.rolesOf', { user: a.user.display_name })}
                </LinkButton>
              )}
              <Settings answer={a} failing={failing} />
            </Group>
          </Stack>
        )}
      </Alert>
      <Section title={t('why.steps')}>
        <Timeline bulletSize={26} active={a.steps.length}>
          {a.steps.map(s => (
            <Timeline.Item
              key={s.step}
              color={s.holds === null ? 'gray' : s.holds ? 'teal' : 'red'}
              bullet={
                s.holds === null ? <IconMinus size={14} /> : s.holds ? <IconCheck size={14} /> : <IconX size={14} />
              }
              title={`${stepText(s, t)}${s.holds === null ? ` (${t('why.notLooked')})` : s.holds ? '' : ` (${t('why.fails')})`}`}
            >
              <Found answer={a} step={s} />
              {s.code === 'policy' && parts.length > 1 && <PolicyParts parts={parts} />}
            </Timeline.Item>
          ))}
        </Timeline>
      </Section>
      {a.policy !== null && a.policy.graph_checks.length > 0 && (
        <Section title={t('tryPolicy.graph')}>
          <GraphChecks checks={a.policy.graph_checks} />
        </Section>
      )}
      {a.policy === null && failing !== 'roles' && failing !== 'exists' && (
        <Section title={t('whoElse.title')}>
          <Text size="sm">{t(failing === undefined ? 'whoElse.everyone' : 'whoElse.noOne')}</Text>
        </Section>
      )}
      {a.policy !== null && (
        <Section title={t('whoElse.title')}>
          <WhoElse
            key={a.policy.expression}
            expression={a.policy.expression}
            hasRoles={a.steps.some(s => STEP_NAME[s.code] === 'roles')}
          />
        </Section>
      )}
    </Stack>
  );
}
