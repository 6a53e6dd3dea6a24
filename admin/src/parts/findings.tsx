import { Alert, Card, Code, List, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import i18next from 'i18next';
import { useTranslation } from 'react-i18next';
import type { Finding } from '../api/problem.ts';
import { currentLanguage } from '../texts/index.ts';
import { placeText } from './place-text.ts';

/** What an administrator can do about a module that is refused by a rule; the rules themselves are worded by `finding`. */
const REMEDY = {
  'not-wasm': 'chooseModule',
  'not-core-module': 'chooseModule',
  malformed: 'copyAgain',
  truncated: 'copyAgain',
  command: 'useKit',
  compile: 'useKit',
  'entry-signature': 'useKit',
  'gc-type': 'useKit',
  'import-kind': 'useKit',
  'import-signature': 'useKit',
  'import-unknown': 'useKit',
  memory64: 'useKit',
  'memory-not-exported': 'useKit',
  'multi-memory': 'useKit',
  'no-entry': 'useKit',
  'no-memory': 'useKit',
  'shared-memory': 'useKit',
  threads: 'useKit',
  'unknown-instruction': 'useKit',
  'unknown-section': 'useKit',
  'compile-memory': 'makeSmaller',
  'compile-time': 'makeSmaller',
  locals: 'makeSmaller',
  memory: 'makeSmaller',
  'memory-initial': 'makeSmaller',
  nesting: 'makeSmaller',
  'table-size': 'makeSmaller',
  time: 'makeSmaller',
  'too-many': 'makeSmaller',
  'import-newer': 'raiseProtocol',
  'newer-gate': 'useKit',
  manifest: 'mendManifest',
  signature: 'signAgain',
} as const;

function remedyOf({ level, rule, where }: Finding): (typeof REMEDY)[keyof typeof REMEDY] | null {
  if (level !== 'refusal' || !Object.hasOwn(REMEDY, rule)) return null;
  // The protocol is that of the kit: authors do not write it.
  return where === 'manifest /abi' ? 'useKit' : REMEDY[rule as keyof typeof REMEDY];
}

/**
 * What a finding means, and the words of the service, which name the place.
 *
 * @param among where it stands: what several in a row mean is said once
 */
function FindingItem(props: { finding: Finding; among: readonly Finding[]; withRemedy: boolean }) {
  const { among, finding: f, withRemedy } = props;
  const { t } = useTranslation();
  // The service may know rules that these pages do not.
  const key = `finding.${f.rule}`;
  const isKnown = i18next.exists(key);
  const remedy = withRemedy ? remedyOf(f) : null;
  return (
    <List.Item>
      {isKnown && among[among.indexOf(f) - 1]?.rule !== f.rule && (
        <Text size="sm" fw={500}>
          {t(key as 'finding.start')}
        </Text>
      )}
      <Text
        lang="en"
        // In a page of another language it is a detail of what the title says.
        {...(isKnown && currentLanguage() !== 'en' ? { size: 'xs' } : { size: 'sm' })}
        style={{ overflowWrap: 'anywhere' }}
      >
        {f.where !== undefined && <Code>{whereText(f.where)}</Code>} {f.message}
      </Text>
      {remedy !== null && <Text size="sm">{t(`remedy.${remedy}`)}</Text>}
    </List.Item>
  );
}

/** Where a finding is: of the manifest `manifest /triggers/1/path` as people count, of the module as the service says it. */
const whereText = (where: string): string =>
  where.startsWith('manifest /') ? placeText(where.replace(' ', '')) : where;

const keyOf = (f: Finding): string => `${f.rule} ${f.where ?? ''} ${f.message}`;

/** Why a module is refused, and what to do, said once for each thing to do. */
export function Refusals({ findings }: { findings: readonly Finding[] }) {
  const refused = findings.filter(f => f.level === 'refusal');
  const isLast = (f: Finding, k: number): boolean => !refused.slice(k + 1).some(g => remedyOf(g) === remedyOf(f));
  return (
    <List size="sm" mt="xs" spacing="xs">
      {refused.map((f, k) => (
        <FindingItem key={keyOf(f)} finding={f} among={refused} withRemedy={isLast(f, k)} />
      ))}
    </List>
  );
}

/** What the inspection of the module says, the gravest first. */
export function Findings({ findings }: { findings: readonly Finding[] }) {
  const { t } = useTranslation();
  const warnings = findings.filter(f => f.level !== 'note');
  const notes = findings.filter(f => f.level === 'note');
  return (
    <>
      {warnings.length > 0 && (
        <Alert
          color="orange"
          icon={<IconAlertTriangle aria-hidden />}
          title={t('review.warnings', { count: warnings.length })}
        >
          <List size="sm">
            {warnings.map(f => (
              <FindingItem key={keyOf(f)} finding={f} among={warnings} withRemedy={false} />
            ))}
          </List>
        </Alert>
      )}
      {notes.length > 0 && (
        <Card withBorder>
          <Text size="sm" fw={600} mb={4}>
            {t('review.notes')}
          </Text>
          <List size="sm">
            {notes.map(f => (
              <FindingItem key={keyOf(f)} finding={f} among={notes} withRemedy={false} />
            ))}
          </List>
        </Card>
      )}
    </>
  );
}
