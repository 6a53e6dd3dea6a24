import { Accordion, Alert, Box, Group, List, Stack, Text, ThemeIcon, Timeline } from '@mantine/core';
import { IconCheck, IconKey, IconLink, IconUser, IconX } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { LinkAnchor } from '../parts/links.tsx';
import { Section } from '../screens/review.tsx';
import { type GraphObject, useObjectNames } from './object-names.ts';
import { objectOf, useGraphWords } from './schema.ts';

type Step = Schemas['CheckStep'];

const flat = (step: Step): Step[] => [step, ...step.steps.flatMap(flat)];

/** From the question down to the relationship that gives it. */
function wayOf(step: Step): Step[] {
  const next = step.steps.find(s => s.allowed);
  return next === undefined ? [step] : [step, ...wayOf(next)];
}

type Leaf = { step: Step; depth: number };

/** Relations that were looked at, those nearest to the object first. */
function relationsOf(step: Step): Step[] {
  const leaves = (s: Step, depth: number): Leaf[] =>
    s.steps.length === 0 ? [{ step: s, depth }] : s.steps.flatMap(next => leaves(next, depth + 1));
  return leaves(step, 0)
    .sort((a, b) => a.depth - b.depth)
    .map(l => l.step);
}

/** Whether a person has a permission; the way that gives it, or what would give it; and all that was looked at. */
export function CheckAnswer({ isAllowed, steps }: { isAllowed: boolean; steps: Step }) {
  const { t } = useTranslation();
  const { label } = useGraphWords();
  const all = flat(steps);
  const nameOf = useObjectNames([objectOf(steps.subject), ...all.map(s => objectOf(s.object))]);
  const named = (text: string): string => nameOf(objectOf(text)) ?? objectOf(text).id;
  const asked = { person: named(steps.subject), permission: label(steps.permission), object: named(steps.object) };
  return (
    <Stack gap="lg">
      <Alert
        color={isAllowed ? 'teal' : 'red'}
        icon={isAllowed ? <IconCheck aria-hidden /> : <IconX aria-hidden />}
        title={t(isAllowed ? 'relationships.answer.yes' : 'relationships.answer.no', asked)}
        role="status"
      />
      {isAllowed ? (
        <Section title={t('relationships.way')} about={t('relationships.wayAbout')}>
          <Way steps={wayOf(steps)} nameOf={nameOf} />
        </Section>
      ) : (
        <Section title={t('relationships.wouldGive')} about={t('relationships.wouldGiveAbout')}>
          <WouldGive leaves={relationsOf(steps)} nameOf={nameOf} />
        </Section>
      )}
      <Accordion variant="contained" chevronPosition="left">
        <Accordion.Item value="all">
          <Accordion.Control>{t('relationships.lookedAt', { count: all.length })}</Accordion.Control>
          <Accordion.Panel>
            <Tree step={steps} nameOf={nameOf} />
          </Accordion.Panel>
        </Accordion.Item>
      </Accordion>
    </Stack>
  );
}

type Naming = { nameOf: (object: GraphObject) => string | null };

function Place({ nameOf, step }: Naming & { step: Step }) {
  const { word } = useGraphWords();
  const object = objectOf(step.object);
  return (
    <>
      <Text span size="sm" c="dimmed">
        {word(object.type)}{' '}
      </Text>
      <LinkAnchor
        to="/admin/relationships"
        search={{ type: object.type, object: object.id }}
        size="sm"
        underline="always"
      >
        {nameOf(object) ?? object.id}
      </LinkAnchor>{' '}
      <Text span size="xs" c="dimmed" ff="monospace" style={{ overflowWrap: 'anywhere' }}>
        {step.object}#{step.permission}
      </Text>
    </>
  );
}

/** A chain from the person up to what was asked: who one is, what that gives, and how it comes down to the object. */
function Way({ nameOf, steps }: Naming & { steps: readonly Step[] }) {
  const { t } = useTranslation();
  const { word } = useGraphWords();
  const last = steps.at(-1);
  if (last === undefined) return null;
  const person = objectOf(last.subject);
  const upwards = [...steps].reverse();
  return (
    <Timeline bulletSize={28} lineWidth={2} active={upwards.length + 1} color="teal">
      <Timeline.Item bullet={<IconUser size={16} aria-hidden />} title={nameOf(person) ?? person.id}>
        <Text size="xs" c="dimmed" ff="monospace">
          {last.subject}
        </Text>
      </Timeline.Item>
      {upwards.map((s, k) => (
        <Timeline.Item
          key={`${s.object}#${s.permission}`}
          bullet={k === 0 ? <IconLink size={16} aria-hidden /> : <IconKey size={16} aria-hidden />}
          title={
            k === 0
              ? t('relationships.step.is', { relation: word(s.permission) })
              : upwards[k - 1]?.object === s.object
                ? t('relationships.step.gives', { permission: word(s.permission) })
                : t('relationships.step.inherits', { permission: word(s.permission) })
          }
        >
          <Place step={s} nameOf={nameOf} />
        </Timeline.Item>
      ))}
    </Timeline>
  );
}

/** Relationships of which each by itself would give what was asked, nearest first, with the form that adds it. */
function WouldGive({ leaves, nameOf }: Naming & { leaves: readonly Step[] }) {
  const { t } = useTranslation();
  const { word } = useGraphWords();
  return (
    <List size="sm" spacing={6}>
      {leaves.map(s => {
        const object = objectOf(s.object);
        return (
          <List.Item key={`${s.object}#${s.permission}`}>
            {t('relationships.beingOf', { relation: word(s.permission) })} <Place step={s} nameOf={nameOf} />{' '}
            <LinkAnchor
              to="/admin/relationships"
              search={{
                tab: 'add',
                type: object.type,
                object: object.id,
                relation: s.permission,
                subject_type: 'user',
                subject: objectOf(s.subject).id,
              }}
              size="sm"
              underline="always"
            >
              {t('relationships.addThis')}
            </LinkAnchor>
          </List.Item>
        );
      })}
    </List>
  );
}

/** Everything that was looked at: each permission with the relations and permissions it consists of. */
function Tree({ nameOf, step }: Naming & { step: Step }) {
  const { t } = useTranslation();
  return (
    <Box>
      <Group gap={8} wrap="nowrap" align="flex-start" py={3}>
        <ThemeIcon
          size={18}
          radius="xl"
          variant="light"
          color={step.allowed ? 'teal' : 'gray'}
          aria-label={t(step.allowed ? 'common.yes' : 'common.no')}
          role="img"
        >
          {step.allowed ? <IconCheck size={12} aria-hidden /> : <IconX size={12} aria-hidden />}
        </ThemeIcon>
        <div style={{ minWidth: 0 }}>
          <Place step={step} nameOf={nameOf} />
        </div>
      </Group>
      {step.steps.length > 0 && (
        <Box
          ml={8}
          pl={{ base: 8, sm: 16 }}
          style={{ borderInlineStart: '1px solid var(--mantine-color-default-border)' }}
        >
          {step.steps.map(s => (
            <Tree key={`${s.object}#${s.permission}`} step={s} nameOf={nameOf} />
          ))}
        </Box>
      )}
    </Box>
  );
}
