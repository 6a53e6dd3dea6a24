import { Alert, Button, Card, Code, Group, Select, SimpleGrid, Stack, Text } from '@mantine/core';
import { useForm } from '@mantine/form';
import { IconCheck } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api } from '../api/client.ts';
import { ApiProblem } from '../api/problem.ts';
import { confirmed } from '../api/questions.ts';
import { useSearchState } from '../app/use-search-state.ts';
import { unknownOf } from '../graph/object-names.ts';
import { ObjectPicker } from '../graph/object-picker.tsx';
import { type Definition, givenBy, useGraphWords } from '../graph/schema.ts';
import { CopyText } from '../parts/copy.tsx';
import { LinkButton } from '../parts/links.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { useLeaveQuestion } from '../parts/use-leave-question.ts';
import { relationshipsChanged } from './relationship-table.tsx';

type Values = Record<'resource_type' | 'resource_id' | 'relation' | 'subject_type' | 'subject_id', string>;
const textOf = (error: React.ReactNode): string | undefined => (typeof error === 'string' ? error : undefined);

type Added = Values & { delivered: boolean };

/** Adds a relationship from pick lists: only what the schema allows can be chosen. */
export default function RelationshipForm({ definitions }: { definitions: readonly Definition[] }) {
  const { t } = useTranslation();
  const { label } = useGraphWords();
  const queries = useQueryClient();
  const [s] = useSearchState();
  const [error, setError] = useState<unknown>(null);
  const [added, setAdded] = useState<Added | null>(null);
  const form = useForm<Values>({
    initialValues: {
      resource_type: s.type ?? 'faculty',
      resource_id: s.object ?? '',
      relation: s.relation ?? '',
      subject_type: s.subject_type ?? 'user',
      subject_id: s.subject ?? '',
    },
  });
  useLeaveQuestion(form.isDirty(), t('common.leaveText'));
  const { relation, resource_type, subject_type } = form.values;
  const types = definitions.filter(d => d.relations.length > 0);
  const definition = types.find(d => d.name === resource_type);
  const subjects = definition?.relations.find(r => r.name === relation)?.subjects ?? [];
  /** What follows from a choice: a type has relations of its own, and a relation its types of subjects. */
  const chooseRelation = (of: Definition | undefined, name: string): void => {
    const allowed = of?.relations.find(r => r.name === name)?.subjects ?? [];
    form.setFieldValue('relation', allowed.length === 0 ? '' : name);
    if (allowed.length > 0 && !allowed.includes(subject_type)) {
      form.setFieldValue('subject_type', allowed[0] ?? 'user');
      form.setFieldValue('subject_id', '');
    }
  };
  /** Whether ids that nothing has are meant so: a name that was typed and not picked would be one. */
  const isMeant = async (v: Values): Promise<boolean> => {
    const unknown = await unknownOf([
      { type: v.resource_type, id: v.resource_id },
      { type: v.subject_type, id: v.subject_id },
    ]);
    if (unknown.length === 0) return true;
    const names = unknown.map(o => `${o.type}:${o.id}`).join(', ');
    const text = t('relationships.unknownText', { names });
    return await confirmed({
      title: t('relationships.unknown'),
      text,
      action: t('relationships.addUnknown'),
      isDangerous: false,
    });
  };
  const submit = form.onSubmit(async values => {
    setError(null);
    setAdded(null);
    try {
      if (!(await isMeant(values))) return;
      const { delivered } = answered(await api.POST('/api/admin/relationships', { body: values }));
      setAdded({ ...values, delivered });
      form.setFieldValue('subject_id', '');
      form.resetDirty({ ...values, subject_id: '' });
      await relationshipsChanged(queries);
    } catch (problem) {
      setError(problem);
      if (problem instanceof ApiProblem) form.setErrors(problem.fields);
    }
  });
  return (
    <form onSubmit={submit}>
      <Stack maw={960}>
        <Text size="sm" c="dimmed">
          {t('relationships.addAbout')}
        </Text>
        <Card withBorder>
          <Stack>
            <SimpleGrid cols={{ base: 1, sm: 3 }}>
              <Select
                label={t('relationships.objectType')}
                data={types.map(d => ({ value: d.name, label: label(d.name) }))}
                allowDeselect={false}
                {...form.getInputProps('resource_type')}
                onChange={v => {
                  form.setFieldValue('resource_type', v ?? '');
                  form.setFieldValue('resource_id', '');
                  chooseRelation(
                    types.find(d => d.name === v),
                    relation,
                  );
                }}
              />
              <ObjectPicker
                type={resource_type}
                label={t('relationships.object')}
                required
                value={form.values.resource_id}
                onChange={id => form.setFieldValue('resource_id', id)}
                error={textOf(form.errors.resource_id)}
              />
              <Select
                label={t('relationships.relation')}
                data={(definition?.relations ?? []).map(r => ({ value: r.name, label: label(r.name) }))}
                required
                allowDeselect={false}
                {...form.getInputProps('relation')}
                value={relation === '' ? null : relation}
                onChange={v => chooseRelation(definition, v ?? '')}
              />
            </SimpleGrid>
            <SimpleGrid cols={{ base: 1, sm: 3 }}>
              <Select
                label={t('relationships.subjectType')}
                data={(subjects.length === 0 ? ['user'] : subjects).map(x => ({ value: x, label: label(x) }))}
                allowDeselect={false}
                {...form.getInputProps('subject_type')}
                onChange={v => {
                  form.setFieldValue('subject_type', v ?? 'user');
                  form.setFieldValue('subject_id', '');
                }}
              />
              <ObjectPicker
                type={subject_type}
                label={t(subject_type === 'user' ? 'relationships.person' : 'relationships.subject')}
                required
                value={form.values.subject_id}
                onChange={id => form.setFieldValue('subject_id', id)}
                error={textOf(form.errors.subject_id)}
              />
            </SimpleGrid>
            <Preview values={form.values} definition={definition} />
          </Stack>
        </Card>
        <ProblemAlert error={error} />
        {added !== null && <AddedAlert added={added} />}
        <Group justify="flex-end">
          <Button
            type="submit"
            loading={form.submitting}
            disabled={relation === '' || form.values.resource_id === '' || form.values.subject_id === ''}
          >
            {t('relationships.addGo')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** The relationship as the graph spells it, and what it gives. */
function Preview({ definition, values: v }: { values: Values; definition: Definition | undefined }) {
  const { t } = useTranslation();
  const { label } = useGraphWords();
  if (v.relation === '') return null;
  const permissions = givenBy(definition, v.relation);
  return (
    <Stack gap={4}>
      <CopyText
        value={`${v.resource_type}:${v.resource_id || '…'}#${v.relation}@${v.subject_type}:${v.subject_id || '…'}`}
      />
      <Text size="sm">
        {v.relation === 'parent'
          ? t('relationships.givesParent')
          : permissions.length === 0
            ? t('relationships.givesNothing')
            : t('relationships.gives', { permissions: permissions.map(label).join(', ') })}
      </Text>
    </Stack>
  );
}

function AddedAlert({ added: a }: { added: Added }) {
  const { t } = useTranslation();
  return (
    <Alert color="teal" icon={<IconCheck aria-hidden />} title={t('relationships.added')} role="status">
      <Stack gap="xs" align="flex-start">
        <Code style={{ overflowWrap: 'anywhere' }}>
          {a.resource_type}:{a.resource_id}#{a.relation}@{a.subject_type}:{a.subject_id}
        </Code>
        {!a.delivered && <Text size="sm">{t('relationships.notDelivered')}</Text>}
        <LinkButton
          to="."
          search={{ type: a.resource_type, object: a.resource_id }}
          size="compact-sm"
          variant="light"
          color="teal"
        >
          {t('relationships.seeObject')}
        </LinkButton>
      </Stack>
    </Alert>
  );
}
