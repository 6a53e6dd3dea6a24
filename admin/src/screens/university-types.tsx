import { Card, Group, SimpleGrid, Stack, Text, ThemeIcon } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { May } from '../app/may.tsx';
import { useSearchState } from '../app/use-search-state.ts';
import { LinkAnchor, LinkButton } from '../parts/links.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { numberText } from '../parts/quantities.ts';
import { StateBadge } from '../parts/state-badge.tsx';
import { When } from '../parts/time.tsx';
import { PHASE, PHASES, TYPE_ICON, TYPE_STATE, type UniversityType, useUniversityTypes } from '../university/types.ts';
import { Section } from './review.tsx';
import { UniversityImport } from './university-import.tsx';
import { UniversityLists } from './university-lists.tsx';

/** The fourteen types in the order in which they refer to each other, or the import of the one that was chosen. */
export default function UniversityTypes() {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const query = useUniversityTypes();
  return (
    <Loaded query={query}>
      {({ items }) => {
        const chosen = items.find(x => x.type === search.type);
        if (chosen !== undefined)
          return (
            <May need="university">
              <UniversityImport key={chosen.type} type={chosen} types={items} />
            </May>
          );
        return (
          <Stack gap="xl">
            <May need="university">
              <UniversityLists types={items} />
            </May>
            {PHASES.map(phase => (
              <Section
                key={phase}
                title={t(`university.phase.${phase}.title`)}
                about={t(`university.phase.${phase}.about`)}
              >
                <SimpleGrid
                  cols={COLUMNS[items.filter(x => PHASE[x.type] === phase).length] ?? COLUMNS[4]}
                  spacing={{ base: 'xs', sm: 'md' }}
                  mt="sm"
                >
                  {items
                    .filter(x => PHASE[x.type] === phase)
                    .map(x => (
                      <Tile key={x.type} type={x} />
                    ))}
                </SimpleGrid>
              </Section>
            ))}
          </Stack>
        );
      }}
    </Loaded>
  );
}

/** Tiles in a row of a phase with so many types: none stands alone below the others. */
const COLUMNS: Readonly<Record<number, { base: number; xs: number; md: number; lg: number; xl?: number }>> = {
  4: { base: 1, xs: 2, md: 2, lg: 4 },
  5: { base: 1, xs: 2, md: 3, lg: 5 },
};

/** How much there is of a type, how its last import went, and the way to the next one. */
function Tile({ type: x }: { type: UniversityType }) {
  const { t } = useTranslation();
  const Sign = TYPE_ICON[x.type];
  const inactive = x.records - x.active;
  return (
    <Card withBorder p={{ base: 'sm', sm: 'md' }}>
      <Stack gap={6} h="100%">
        <Group gap="xs" wrap="nowrap">
          <ThemeIcon variant="light" size="lg">
            <Sign size={20} aria-hidden />
          </ThemeIcon>
          <LinkAnchor
            to="."
            search={{ type: x.type }}
            fw={600}
            c="inherit"
            fz={{ base: 'md', md: 'sm' }}
            lh={1.2}
            style={{ minWidth: 0, overflowWrap: 'break-word', hyphens: 'auto' }}
          >
            {t(`university.type.${x.type}`)}
          </LinkAnchor>
        </Group>
        <Group gap={6} align="baseline">
          <Text size="xl" fw={700}>
            {numberText(x.active)}
          </Text>
          {inactive > 0 && (
            <Text size="sm" c="dimmed">
              {t('university.inactive', { count: inactive })}
            </Text>
          )}
        </Group>
        {x.last === null ? (
          <Text size="sm" c="dimmed">
            {t('university.notImported')}
          </Text>
        ) : (
          <Group gap={6}>
            <LinkAnchor
              to="/admin/university/imports/$import"
              params={{ import: String(x.last.import) }}
              underline="never"
              aria-label={`${t(`university.state.${x.last.state}`)}. ${t('university.lastImport', { id: x.last.import })}`}
            >
              <StateBadge kind={TYPE_STATE[x.last.state]} label={t(`university.state.${x.last.state}`)} />
            </LinkAnchor>
            <Text size="sm" c="dimmed" component="span">
              <When at={x.last.at} />
            </Text>
            {x.last.failed > 0 && (
              <Text size="sm" c="red">
                {t('university.failed', { count: x.last.failed })}
              </Text>
            )}
          </Group>
        )}
        <LinkButton to="." search={{ type: x.type }} variant="light" size="xs" mt="auto">
          {t('university.import')}
        </LinkButton>
      </Stack>
    </Card>
  );
}
