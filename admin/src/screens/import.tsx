import { Alert, Stack, Text } from '@mantine/core';
import { IconCircleCheck } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { Download } from '../parts/download.tsx';
import { Empty } from '../parts/empty.tsx';
import { Facts } from '../parts/facts.tsx';
import { KeysetTable, useKeyset } from '../parts/keyset-list.tsx';
import { LinkAnchor, LinkButton } from '../parts/links.tsx';
import { LoadedPage } from '../parts/loaded-page.tsx';
import { Page } from '../parts/page.tsx';
import { durationText } from '../parts/quantities.ts';
import { StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';
import { ImportTypes } from '../university/import-types.tsx';
import { StoppedTypes } from '../university/stopped-types.tsx';
import { type ImportRun, RUN_STATE, type UniversityType, useUniversityTypes } from '../university/types.ts';
import { WrongText } from '../university/wrong-text.tsx';
import { Section } from './review.tsx';

type KeptError = Schemas['RecordError'] & { type: UniversityType['type'] };
type ErrorPage = { items: KeptError[]; next_cursor: string | null };
const RUNNING_MS = 2000;
const PAGE = 50;

/** One import: what it did to each type, and what was wrong with which record. */
export default function ImportScreen() {
  const { t } = useTranslation();
  const { import: number = '' } = useParams({ strict: false });
  const id = Number(number);
  const query = useQuery({
    queryKey: ['university', 'import', id],
    queryFn: async () => answered(await api.GET('/api/admin/university/imports/{id}', { params: { path: { id } } })),
    refetchInterval: q => (q.state.data?.state === 'running' ? RUNNING_MS : false),
    staleTime: 0,
  });
  const title = t('university.importNumber', { id: number });
  const crumbs = (
    <LinkAnchor to="/admin/university" search={{ tab: 'history' }} size="sm">
      {t('nav.university')}
    </LinkAnchor>
  );
  return (
    <LoadedPage query={query} title={title} crumbs={crumbs}>
      {run => (
        <Page
          title={title}
          crumbs={crumbs}
          about={<StateBadge kind={RUN_STATE[run.state]} label={t(`imports.state.${run.state}`)} />}
          actions={<Again run={run} />}
        >
          <Facts
            facts={[
              { label: t('university.whatCame'), value: t(`university.kindOf.${run.kind}`) },
              { label: t('university.begun'), value: <When at={run.started_at} /> },
              run.finished_at === null
                ? null
                : {
                    label: t('university.lasted'),
                    value: durationText(new Date(run.finished_at).getTime() - new Date(run.started_at).getTime()),
                  },
              {
                label: t('university.by'),
                value: t(`university.starter.${run.starter.kind}`, { name: run.starter.name ?? '' }),
              },
            ]}
          />
          {run.problem !== null && <Alert color="red">{run.problem}</Alert>}
          <LatestStopped run={run} />
          <Section title={t('university.types')}>
            <ImportTypes run={run} />
          </Section>
          <Errors run={run} />
        </Page>
      )}
    </LoadedPage>
  );
}

/** The way to the next import of the same. */
function Again({ run }: { run: ImportRun }) {
  const { t } = useTranslation();
  const [only] = run.types;
  if (run.kind === 'pull')
    return (
      <LinkButton to="/admin/university" search={{ tab: 'pulls' }} variant="default">
        {t('university.toPulls')}
      </LinkButton>
    );
  return only === undefined ? null : (
    <LinkButton to="/admin/university" search={{ type: only.type }} variant="default">
      {t('university.importAgain', { type: t(`university.type.${only.type}`) })}
    </LinkButton>
  );
}

/** The brake is released for what the last pull says; an older one may have been overtaken. */
function LatestStopped({ run }: { run: ImportRun }) {
  const isStopped = run.types.some(x => x.state === 'stopped');
  const latest = useQuery({
    queryKey: ['university', 'source'],
    queryFn: async () => answered(await api.GET('/api/admin/university/source')),
    enabled: isStopped,
    staleTime: 0,
  });
  return isStopped && latest.data?.last_pull?.id === run.id ? <StoppedTypes run={run} /> : null;
}

function Errors({ run }: { run: ImportRun }) {
  const { t } = useTranslation();
  const types = useUniversityTypes();
  const list = useKeyset<KeptError, ErrorPage>(['university', 'import', run.id, 'errors', run.state], async cursor =>
    answered(
      await api.GET('/api/admin/university/imports/{id}/errors', {
        params: { path: { id: run.id }, query: { limit: PAGE, cursor } },
      }),
    ),
  );
  return (
    <Section title={t('university.errors')}>
      <Stack align="stretch">
        {list.rows.length > 0 && (
          <div>
            <Download
              size="xs"
              label={t('university.saveErrors')}
              load={signal =>
                api.GET('/api/admin/university/imports/{id}/errors.csv', {
                  params: { path: { id: run.id } },
                  parseAs: 'blob',
                  signal,
                })
              }
            />
          </div>
        )}
        <KeysetTable
          label={t('university.errors')}
          query={list}
          rowKey={e => `${e.type} ${e.index} ${e.field} ${e.code}`}
          columns={[
            {
              key: 'record',
              title: t('university.record'),
              cell: e => (
                <div>
                  <Text size="sm">{t(`university.type.${e.type}`)}</Text>
                  <Text size="xs" c="dimmed" ff="monospace" style={{ overflowWrap: 'anywhere' }}>
                    {e.external_id ?? '–'} · {t('university.entry', { entry: e.index + 1 })}
                  </Text>
                  <Text size="xs" ff="monospace" hiddenFrom="sm" style={{ overflowWrap: 'anywhere' }}>
                    {e.field}
                  </Text>
                </div>
              ),
            },
            {
              key: 'field',
              title: t('university.field'),
              from: 'sm',
              cell: e => (
                <Text size="sm" ff="monospace">
                  {e.field ?? '–'}
                </Text>
              ),
            },
            {
              key: 'wrong',
              title: t('university.wrong'),
              cell: e => (
                <div>
                  <Text size="sm" fw={500}>
                    {t(`university.code.${e.code}`)}
                  </Text>
                  <WrongText error={e} type={types.data?.items.find(x => x.type === e.type)} />
                </div>
              ),
            },
          ]}
          empty={<Empty icon={IconCircleCheck} title={t('university.noErrorsTitle')} text={t('university.noErrors')} />}
        />
      </Stack>
    </Section>
  );
}
