import { Text } from '@mantine/core';
import type { TFunction } from 'i18next';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { currentLanguage } from '../texts/index.ts';
import { LIST_EXAMPLE } from './field-list.tsx';
import { wrongOf } from './record-error.ts';
import type { UniversityType } from './types.ts';

type RecordError = Schemas['RecordError'];

/** What is wrong with a record, in the language of the page; the service words it in English, at times more closely. */
export function WrongText({ error: e, type }: { error: RecordError; type: UniversityType | undefined }) {
  const { t } = useTranslation();
  const field = fieldOf(e, type);
  // The values say everything; of a text that is too long the kind does not.
  const isVague = e.code === 'conflict' || (e.code === 'invalid' && (field === undefined || field.values === null));
  if (currentLanguage() === 'en')
    return (
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        {wrongOf(e)}
      </Text>
    );
  return (
    <>
      <Text size="sm">{wordsOf(e, field, t)}</Text>
      {isVague && (
        <Text size="xs" c="dimmed" lang="en" style={{ overflowWrap: 'anywhere' }}>
          {wrongOf(e)}
        </Text>
      )}
    </>
  );
}

type Field = UniversityType['fields'][number];

const fieldOf = (e: RecordError, type: UniversityType | undefined): Field | undefined =>
  type?.fields.find(f => f.name === e.field?.split('/')[0]);

function wordsOf(e: RecordError, field: Field | undefined, t: TFunction): string {
  if (e.code === 'unknown_reference')
    return field === undefined || field.references === null
      ? t('university.rule.reference')
      : t('university.rule.referenceTo', { type: t(`university.type.${field.references}`) });
  if (e.code !== 'invalid') return t(`university.rule.${e.code}`);
  if (field === undefined) return t('university.rule.invalid');
  const example = field.kind === 'list' ? LIST_EXAMPLE : '';
  return field.values === null
    ? t('university.rule.kind', { kind: t(`university.kind.${field.kind}`, { name: field.name, example }) })
    : t('university.rule.values', { values: field.values.join(', ') });
}
