import { Anchor, Button, Code, Drawer, Group, SimpleGrid, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconHistory } from '@tabler/icons-react';
import { lazy, Suspense, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { May, useRefusal } from '../app/may.tsx';
import { readable } from '../app/theme.ts';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { Outdated } from '../parts/outdated.tsx';
import { notifyProblem, ProblemAlert } from '../parts/problem.tsx';
import { When } from '../parts/time.tsx';
import { useDraft } from '../parts/use-draft.ts';
import { useLeaveQuestion } from '../parts/use-leave-question.ts';
import { ComparePolicy } from './compare-policy.tsx';
import type { PolicyNotice } from './editor.tsx';
import { ExpressionDiff } from './expression-diff.tsx';
import { TryPolicy } from './try-policy.tsx';

/** A click takes one into the editor. */
const EXAMPLES = [
  'has_role("teacher")',
  'user.education_form == "full_time"',
  'check("view_all", "faculty", "f1")',
] as const;

const PolicyEditor = lazy(() => import('./editor.tsx'));
type Revision = Schemas['PolicyRevision'];

/** Writes a policy, tries it with a user, saves it, and brings an older one back. */
export function PolicyWorkbench(props: {
  plugin: string;
  /** Name of the trigger or command. */
  trigger: string;
  /** Names it among what was read. */
  name: readonly string[];
  saved: string;
  /** Tag of the settings it was read with. */
  tag: string;
  problems: ReadonlyArray<Schemas['PolicyProblem']>;
  save: (expression: string, tag: string) => Promise<unknown>;
  revisions: (cursor: string | undefined) => Promise<{ items: Revision[]; next_cursor: string | null }>;
  /** Brings an older one back; `reread` shows it. */
  restore: (revision: number, tag: string) => Promise<unknown>;
  reread: () => Promise<unknown>;
}) {
  const { name, plugin, problems, reread, restore, revisions, save, tag, trigger } = props;
  const { t } = useTranslation();
  const edit = useDraft(props.saved, tag);
  const { isChanged, saved, set: setDraft, value: draft } = edit;
  /** Puts a text into the editor; what is typed there and not saved is asked about. */
  const mayReplace = async (): Promise<boolean> =>
    !isChanged ||
    (await confirmed({
      title: t('policy.replaceTitle'),
      text: t('policy.leaveText'),
      action: t('policy.replaceGo'),
      isDangerous: true,
    }));
  const replace = async (expression: string): Promise<void> => {
    if (await mayReplace()) setDraft(expression);
  };
  const [notices, setNotices] = useState<readonly PolicyNotice[]>([]);
  const wrong = notices.filter(n => n.isError).length;
  const [error, setError] = useState<unknown>(null);
  const [isSaving, setSaving] = useState(false);
  const [isHistoryOpen, history] = useDisclosure(false);
  const attempt = async (work: () => Promise<unknown>): Promise<void> => {
    setSaving(true);
    setError(null);
    try {
      await work();
    } catch (problem) {
      setError(problem);
    } finally {
      setSaving(false);
    }
  };
  /** What was said of another draft. */
  const forget = (): void => {
    setError(null);
    setNotices([]);
  };
  const refusalOf = useRefusal();
  const refusal = refusalOf('access');
  const mayReadPeople = refusalOf('people') === null;
  useLeaveQuestion(isChanged, t('policy.leaveText'));
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="xl">
      <Stack gap="sm">
        <Suspense fallback={<Code block>{draft}</Code>}>
          <PolicyEditor
            value={draft}
            onChange={setDraft}
            onProblems={setNotices}
            label={t('access.policy')}
            hint={t('policy.hint')}
          />
        </Suspense>
        {isChanged &&
          notices.map(n => (
            <Text key={n.message} size="sm" c={readable(n.isError ? 'red' : 'orange')} role="status" lang="en">
              {n.message}
            </Text>
          ))}
        {problems.length > 0 && !isChanged && (
          <Text size="sm" c="red">
            {t('policy.deniesAll')} <span lang="en">{problems.map(p => p.message).join('; ')}</span>
          </Text>
        )}
        <Text size="sm" c="dimmed">
          {t('policy.examples')}{' '}
          {EXAMPLES.map(x => (
            <Anchor key={x} component="button" type="button" onClick={() => void replace(x)} mr="xs">
              <Code>{x}</Code>
            </Anchor>
          ))}
        </Text>
        {refusal !== null && (
          <Text size="sm" c="dimmed" role="note">
            {t(mayReadPeople ? 'policy.onlyTry' : 'policy.onlyWrite')} {refusal}
          </Text>
        )}
        {edit.isOutdated && (
          <Outdated draft={edit} onChosen={forget}>
            {props.saved === '' ? t('policy.none') : <Code>{props.saved}</Code>}
          </Outdated>
        )}
        {isChanged && !edit.isOutdated && <ProblemAlert error={error} />}
        <Group>
          <May need="access" isInline>
            <Button
              onClick={() => attempt(() => edit.save(draft, save))}
              loading={isSaving}
              disabled={!isChanged || edit.isOutdated || wrong > 0}
            >
              {draft.trim() === '' && saved !== '' ? t('policy.remove') : t('common.save')}
            </Button>
          </May>
          <Button variant="default" onClick={edit.drop} disabled={!isChanged}>
            {t('policy.discard')}
          </Button>
          <Button variant="subtle" leftSection={<IconHistory size={16} />} onClick={history.open}>
            {t('policy.history')}
          </Button>
        </Group>
        <Drawer
          opened={isHistoryOpen}
          onClose={history.close}
          title={t('policy.history')}
          position="right"
          size="xl"
          closeButtonProps={{ 'aria-label': t('common.close') }}
        >
          <Revisions
            name={name}
            load={revisions}
            onRestore={async id => {
              if (!(await mayReplace())) return;
              try {
                await restore(id, tag);
                edit.drop();
                forget();
                await reread();
                history.close();
              } catch (problem) {
                notifyProblem(problem);
              }
            }}
            onTake={async expression => {
              await replace(expression);
              history.close();
            }}
          />
        </Drawer>
      </Stack>
      <Stack>
        <TryPolicy expression={draft} isBroken={wrong > 0} />
        <ComparePolicy
          key={`${props.saved}\n${draft}`}
          plugin={plugin}
          trigger={trigger}
          saved={props.saved}
          draft={draft}
          isBroken={wrong > 0}
        />
      </Stack>
    </SimpleGrid>
  );
}

function Revisions(props: {
  name: readonly string[];
  load: (cursor: string | undefined) => Promise<{ items: Revision[]; next_cursor: string | null }>;
  onRestore: (revision: number) => void;
  onTake: (expression: string) => void;
}) {
  const { t } = useTranslation();
  const list = useKeyset<Revision, { items: Revision[] }>([...props.name, 'revisions'], props.load);
  // The newest comes first. What was before the last of a page is known with the next page.
  const before = new Map(
    list.rows.map((r, k) => [r.id, list.rows[k + 1]?.expression ?? (list.hasNextPage ? null : '')]),
  );
  return (
    <KeysetTable
      label={t('policy.history')}
      query={list}
      rowKey={r => r.id}
      columns={[
        {
          key: 'expression',
          title: t('access.policy'),
          cell: r =>
            r.expression === '' ? (
              <Text c="dimmed">{t('policy.none')}</Text>
            ) : (
              <ExpressionDiff before={before.get(r.id) || null} after={r.expression} />
            ),
        },
        {
          key: 'by',
          title: t('policy.by'),
          cell: r => (
            <Text size="sm">
              {r.author}
              <br />
              <When at={r.at} />
            </Text>
          ),
        },
        {
          key: 'actions',
          title: '',
          cell: r => (
            <Stack gap={4}>
              <May need="access" isInline>
                <Button size="compact-xs" variant="light" onClick={() => props.onRestore(r.id)}>
                  {t('policy.restore')}
                </Button>
              </May>
              <Button size="compact-xs" variant="subtle" onClick={() => props.onTake(r.expression)}>
                {t('policy.take')}
              </Button>
            </Stack>
          ),
        },
      ]}
      empty={<Text c="dimmed">{t('policy.noHistory')}</Text>}
    />
  );
}
