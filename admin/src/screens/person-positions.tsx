import { Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { useGraphWords } from '../graph/schema.ts';
import { CopyText } from '../parts/copy.tsx';
import { LinkAnchor } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { dayText } from '../parts/time.tsx';
import type { en } from '../texts/en.ts';
import { Section } from './review.tsx';

type User = Schemas['User'];
type Position = Schemas['UserPosition'];

/** How the university's data say a person can be reached, and where the person studies, teaches or holds an office; what counts today first. */
export function PersonPositions({ person }: { person: User }) {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ['users', 'university', person.id],
    queryFn: async () =>
      answered(await api.GET('/api/admin/users/{user}/university', { params: { path: { user: person.id } } })),
  });
  return (
    <Section title={t('personPositions.title')} about={t('personPositions.about')}>
      <Loaded query={query}>
        {({ person: known, positions }) => (
          <Stack gap="sm">
            {[known?.email, known?.phone].map(
              address => typeof address === 'string' && <CopyText key={address} value={address} />,
            )}
            {known?.is_active === false && <Text size="sm">{t('personPositions.gone')}</Text>}
            {positions.length === 0 && (
              <Text size="sm">{t(known === null ? 'personPositions.unknown' : 'personPositions.empty')}</Text>
            )}
            {positions.map(p => (
              <OnePosition key={`${p.kind} ${p.external_id}`} position={p} />
            ))}
          </Stack>
        )}
      </Loaded>
    </Section>
  );
}

type Words = (typeof en)['personPositions']['status'];
const STATUSES: ReadonlyArray<keyof Words> = ['expelled', 'graduated', 'leave', 'studying'];

/** What follows the kind of a position; data may have words of their own. */
function useTitle({ kind, title }: Position): string | null {
  const { t } = useTranslation();
  const { word } = useGraphWords();
  if (title === null) return null;
  if (kind === 'appointment') return word(title);
  const status = STATUSES.find(s => kind === 'student' && s === title);
  return status === undefined ? title : t(`personPositions.status.${status}`);
}

function OnePosition({ position: p }: { position: Position }) {
  const { t } = useTranslation();
  const { word } = useGraphWords();
  const title = useTitle(p);
  const dates = [p.start_date, p.end_date].map(day => (day === null ? '…' : dayText(day))).join(' – ');
  return (
    <div>
      <Text size="sm" fw={500}>
        {t(`personPositions.kind.${p.kind}`)}
        {title !== null && `: ${title}`}
      </Text>
      <Text size="sm" component="div">
        {word(p.object_type)}{' '}
        <LinkAnchor
          to="/admin/relationships"
          search={{ type: p.object_type, object: p.object_id }}
          size="sm"
          style={{ overflowWrap: 'anywhere' }}
        >
          {p.object_name ?? p.object_id}
        </LinkAnchor>
      </Text>
      <Group gap="xs" mt={2}>
        <StateBadge
          kind={p.holds ? 'good' : 'off'}
          label={t(p.holds ? 'personPositions.holds' : 'personPositions.ended')}
        />
        {(p.start_date !== null || p.end_date !== null) && (
          <Text size="xs" c="dimmed">
            {dates}
          </Text>
        )}
      </Group>
    </div>
  );
}
