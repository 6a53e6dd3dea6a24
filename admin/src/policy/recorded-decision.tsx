import { Code, Group, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { LinkButton } from '../parts/links.tsx';
import { StateBadge } from '../parts/state-badge.tsx';
import { Section } from '../screens/review.tsx';
import { GraphChecks } from './graph-checks.tsx';

/**
 * How it was decided that a caller might, or not, with all that was asked then. Of a person, the page "Why?" says what holds now; of a
 * service key, whose policy sees no person, it is said here what would have to change.
 *
 * @param props.of the execution of the decision
 */
export function RecordedDecision(props: {
  decision: Schemas['RecordedDecision'];
  of: Pick<Schemas['Execution'], 'outcome' | 'plugin_id' | 'principal' | 'trigger'>;
}) {
  const { decision: d, of: e } = props;
  const { t } = useTranslation();
  const isRefused = e.outcome === 'refused';
  const checks = d.policy?.graph_checks ?? [];
  return (
    <Section title={t(isRefused ? 'executions.whyRefused' : 'executions.decision')}>
      <Stack gap="sm" align="flex-start">
        <Text size="sm">
          {t(
            d.reason === 'allowed' && d.policy === null
              ? 'executions.reason.roles_held'
              : `executions.reason.${d.reason}`,
          )}
          {d.detail !== null && (
            <>
              {' '}
              <span lang="en">{d.detail}</span>
            </>
          )}
        </Text>
        {d.roles.map(r => (
          <Group key={`${r.kind} ${r.role}`} gap="xs">
            <Text size="sm">{t(`why.role.${r.kind}`, { role: r.role })}</Text>
            <StateBadge kind={r.held ? 'good' : 'bad'} label={t(r.held ? 'common.yes' : 'common.no')} />
          </Group>
        ))}
        {checks.length > 0 && <GraphChecks checks={checks} />}
        {isRefused && e.principal.startsWith('service:') && d.reason !== 'unavailable' && (
          <>
            {d.reason === 'policy_failed' && (
              <>
                <Text size="sm">{t('executions.refusedKey')}</Text>
                <Code
                  style={{ overflowWrap: 'anywhere' }}
                >{`principal.kind == "service" || (${t('executions.policyOfNow')})`}</Code>
              </>
            )}
            <LinkButton
              size="xs"
              variant="default"
              to="/admin/plugins/$id/triggers/$name"
              params={{ id: e.plugin_id, name: e.trigger }}
            >
              {t('why.toSettings')}
            </LinkButton>
          </>
        )}
      </Stack>
    </Section>
  );
}
