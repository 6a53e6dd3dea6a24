import { Switch, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

type State = Readonly<Record<string, unknown>> | null;
type Line = { path: string; before: unknown; after: unknown };

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Members of both, nested ones by their path. */
export function diffLines(before: unknown, after: unknown, path = ''): Line[] {
  const isNested = (isObject(before) || before === undefined) && (isObject(after) || after === undefined);
  if (!isNested) return [{ path, before, after }];
  const [b, a] = [isObject(before) ? before : {}, isObject(after) ? after : {}];
  return [...new Set([...Object.keys(b), ...Object.keys(a)])].flatMap(name =>
    diffLines(b[name], a[name], path === '' ? name : `${path}.${name}`),
  );
}

/** What a change changed, member by member: before and after next to each other. */
export function StateDiff({ after, before }: { before: State; after: State }) {
  const { t } = useTranslation();
  const [isWhole, setWhole] = useState(false);
  const lines = diffLines(before ?? undefined, after ?? undefined);
  const changed = lines.filter(l => !same(l.before, l.after));
  const shown = isWhole ? lines : changed;
  if (lines.length === 0)
    return (
      <Text size="sm" c="dimmed">
        {t('audit.noState')}
      </Text>
    );
  return (
    <>
      {changed.length < lines.length && (
        <Switch
          mb="xs"
          size="sm"
          label={t('audit.unchanged', { count: lines.length - changed.length })}
          checked={isWhole}
          onChange={e => setWhole(e.currentTarget.checked)}
        />
      )}
      <Table.ScrollContainer tabIndex={0} minWidth={280} type="native">
        <Table verticalSpacing={6} aria-label={t('audit.changes')} layout="fixed">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t('audit.member')}</Table.Th>
              {before !== null && <Table.Th>{t('audit.before')}</Table.Th>}
              {after !== null && <Table.Th>{t('audit.after')}</Table.Th>}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {shown.map(l => {
              const isChanged = before !== null && after !== null && !same(l.before, l.after);
              return (
                <Table.Tr key={l.path}>
                  <Table.Td style={{ overflowWrap: 'anywhere' }}>{l.path}</Table.Td>
                  {before !== null && (
                    <Table.Td>
                      <Value value={l.before} sign={isChanged ? '−' : null} />
                    </Table.Td>
                  )}
                  {after !== null && (
                    <Table.Td>
                      <Value value={l.after} sign={isChanged ? '+' : null} />
                    </Table.Td>
                  )}
                </Table.Tr>
              );
            })}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </>
  );
}

function Value({ sign, value }: { value: unknown; sign: '+' | '−' | null }) {
  const { t } = useTranslation();
  if (value === undefined || value === null || value === '')
    return (
      <Text size="sm" c="dimmed">
        {t('audit.nothing')}
      </Text>
    );
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 1);
  return (
    <Text
      size="sm"
      ff="monospace"
      fz="xs"
      c={sign === null ? undefined : sign === '+' ? 'var(--mantine-color-teal-text)' : 'var(--mantine-color-red-text)'}
      style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}
    >
      {sign === null ? text : `${sign} ${text}`}
    </Text>
  );
}
