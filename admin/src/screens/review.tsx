import { Alert, Badge, Card, Code, Group, List, SimpleGrid, Stack, Table, Text, Title } from '@mantine/core';
import { IconAlertTriangle, IconInfoCircle } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { AccessBadge } from '../parts/access-badge.tsx';
import { CopyText } from '../parts/copy.tsx';
import { Findings } from '../parts/findings.tsx';
import { bytesText } from '../parts/quantities.ts';
import { StateBadge } from '../parts/state-badge.tsx';
import { WideningList } from '../parts/widening.tsx';
import { accessUnchanged } from './install-access.tsx';

const PAGE_BYTES = 65_536;
/** How much harm a permission can do, if the plugin means harm. */
const RISK = {
  kv: 'low',
  file: 'medium',
  events: 'medium',
  notify: 'medium',
  'plugins:call': 'medium',
  sql: 'high',
  network: 'high',
} as const;
const RISK_COLOR = { low: 'teal', medium: 'yellow', high: 'orange' } as const;

const CONFIRMED: ReadonlySet<string> = new Set(['frontend', 'html', 'policy']);

/** What a requirement asks for, as permissions are called. */
export const permissionOf = (r: Schemas['Requirement']): string =>
  r.kind === 'plugins:call' ? `plugins:call:${r.target ?? ''}` : r.kind;

const SIGNED = { none: 'off', trusted: 'good', unknown: 'warn', wrong: 'bad' } as const;

/** Who signed the module: as its author, who must be known here to count. */
export function Signed({
  isShort = false,
  signature: s,
}: {
  signature: Schemas['ModuleSignature'];
  isShort?: boolean;
}) {
  const { t } = useTranslation();
  const words = { signer: s.signer ?? '', key: s.key_id ?? '' };
  if (isShort && s.state !== 'none')
    return <StateBadge kind={SIGNED[s.state]} label={t(`signature.short.${s.state}`, words)} />;
  return (
    <Group mt={6} gap="xs">
      <StateBadge kind={SIGNED[s.state]} label={t(`signature.${s.state}`, words)} />
      {s.comment !== null && (
        <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          {s.comment}
        </Text>
      )}
    </Group>
  );
}

/** What a version is and asks for, in plain words, before it is installed. */
export function Review({ upload }: { upload: Schemas['Upload'] }) {
  const { t } = useTranslation();
  // The others have places of their own here, and in the form.
  const widens = upload.installed_version === null ? [] : upload.widens.filter(w => CONFIRMED.has(w.kind));
  return (
    <Stack>
      <Card withBorder>
        <Group justify="space-between" align="flex-start">
          <div>
            <Title order={2} size="h3">
              {upload.name}
            </Title>
            <Text size="sm" c="dimmed">
              <Code>{upload.id}</Code> · {t('review.version', { version: upload.version })}
              {upload.installed_version !== null && (
                <> · {t('review.replaces', { version: upload.installed_version })}</>
              )}
            </Text>
          </div>
          <Text size="sm" c="dimmed">
            {bytesText(upload.size)} · {t('review.memory', { most: bytesText(upload.memory_pages.max * PAGE_BYTES) })}
          </Text>
        </Group>
        <Group mt="sm" gap={6}>
          <Text size="xs" c="dimmed">
            SHA-256
          </Text>
          <CopyText value={upload.sha256} />
        </Group>
        <Signed signature={upload.signature} />
      </Card>
      {upload.is_installed && (
        <Alert color="blue" icon={<IconInfoCircle aria-hidden />} title={t('review.sameAsInstalled')}>
          {t('review.sameAsInstalledAbout')}
        </Alert>
      )}
      {upload.installed_version !== null && !upload.is_installed && <Replaced upload={upload} />}
      <Findings findings={upload.findings} />
      {widens.length > 0 && (
        <Alert color="orange" icon={<IconAlertTriangle aria-hidden />} title={t('widening.title')}>
          <WideningList widens={widens} />
        </Alert>
      )}
      <Section title={t('review.permissions')}>
        {upload.requirements.length === 0 ? (
          <Text size="sm">{t('review.noPermissions')}</Text>
        ) : (
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            {upload.requirements.map(r => {
              const permission = permissionOf(r);
              const risk = RISK[r.kind];
              const isNew = upload.installed_version !== null && upload.new_permissions.includes(permission);
              return (
                <Card
                  withBorder
                  key={`${r.kind} ${r.name ?? ''} ${r.target ?? ''}`}
                  bd={isNew ? '2px solid var(--mantine-color-orange-6)' : undefined}
                >
                  <Group justify="space-between" mb={4}>
                    <Text fw={600}>
                      {t(`permission.${r.kind}.title`)}
                      {r.name !== undefined && `: ${r.name}`}
                      {r.target !== undefined && `: ${r.target}`}
                    </Text>
                    <Group gap={6}>
                      {isNew && (
                        <Badge variant="light" color="orange">
                          {t('review.new')}
                        </Badge>
                      )}
                      <Badge variant="light" color={RISK_COLOR[risk]} tt="none">
                        {t(`review.risk.${risk}`)}
                      </Badge>
                    </Group>
                  </Group>
                  <Text size="sm">{t(`permission.${r.kind}.about`)}</Text>
                  <Text size="sm" mt={6}>
                    <Text span c="dimmed">
                      {t('review.reason')}
                    </Text>{' '}
                    {r.description}
                  </Text>
                </Card>
              );
            })}
          </SimpleGrid>
        )}
      </Section>
      <Section title={t('review.access')} about={t('review.accessAbout')}>
        <Table.ScrollContainer tabIndex={0} minWidth={280} type="native">
          <Table verticalSpacing="xs" className="stacked" aria-label={t('review.access')}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>{t('access.trigger')}</Table.Th>
                <Table.Th>{t('review.asIs')}</Table.Th>
                <Table.Th>{t('review.suggested')}</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {upload.access.map(a => (
                <Table.Tr key={a.trigger}>
                  <Table.Td>
                    <div>
                      <Text size="sm" fw={500}>
                        {a.trigger}{' '}
                        {a.new && upload.installed_version !== null && (
                          <Badge size="xs" variant="light" color="orange">
                            {t('review.new')}
                          </Badge>
                        )}
                      </Text>
                      <Code style={{ overflowWrap: 'anywhere' }}>
                        {a.methods.join(', ')} {a.url}
                      </Code>
                    </div>
                  </Table.Td>
                  <Table.Td data-label={t('review.asIs')}>
                    <AccessBadge {...accessUnchanged(a, upload)} />
                  </Table.Td>
                  <Table.Td data-label={t('review.suggested')}>
                    {a.suggested === null ? (
                      '–'
                    ) : (
                      <div>
                        <AccessBadge access={a.suggested.effective_access} hasPolicy={a.suggested.policy !== ''} />
                        <Text size="xs" mt={4}>
                          {a.suggested.reason}
                        </Text>
                        {a.suggested.policy !== '' && (
                          <Code style={{ overflowWrap: 'anywhere' }}>{a.suggested.policy}</Code>
                        )}
                      </div>
                    )}
                  </Table.Td>
                </Table.Tr>
              ))}
              {upload.triggers
                .filter(x => x.type === 'messenger')
                .map(x => (
                  <Table.Tr key={`/${x.name}`}>
                    <Table.Td>
                      <div>
                        <Text size="sm" fw={500}>
                          /{x.name}
                        </Text>
                        <Text size="xs" c="dimmed">
                          {t('review.command')} {x.description}
                        </Text>
                      </div>
                    </Table.Td>
                    <Table.Td colSpan={2}>
                      <Text size="sm">{t('review.commandAccess')}</Text>
                    </Table.Td>
                  </Table.Tr>
                ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      </Section>
      {upload.notices.map(n => (
        <Alert
          key={n.code}
          color={n.code === 'frontend_trusted' ? 'orange' : 'blue'}
          icon={n.code === 'frontend_trusted' ? <IconAlertTriangle aria-hidden /> : <IconInfoCircle aria-hidden />}
          title={t(`notice.${n.code}.title`)}
        >
          {t(`notice.${n.code}.text`)}
        </Alert>
      ))}
    </Stack>
  );
}

/** Whether a version has the lower number, as far as both are numbers with dots. */
function isLower(version: string, than: string): boolean {
  const [a, b] = [version, than].map(v => (/^\d+(\.\d+)*$/.test(v) ? v.split('.').map(Number) : null));
  if (a == null || b == null) return false;
  for (let k = 0; k < Math.max(a.length, b.length); k++) {
    const [left, right] = [a[k] ?? 0, b[k] ?? 0];
    if (left !== right) return left < right;
  }
  return false;
}

type AnyTrigger = Schemas['Upload']['triggers'][number];

const addressesOf = (x: AnyTrigger): string[] => (x.type === 'http' ? x.methods.map(m => `${m} ${x.path}`) : []);
const commandOf = (x: AnyTrigger): string[] => (x.type === 'messenger' ? [`/${x.name}`] : []);
const lost = (before: readonly string[], now: readonly string[]): string[] => before.filter(x => !now.includes(x));

/** What is lost, or may be a mistake, when the version takes the place of the one that is installed. */
function Replaced({ upload }: { upload: Schemas['Upload'] }) {
  const { t } = useTranslation();
  const { data: installed } = useQuery({
    queryKey: ['plugins', upload.id],
    queryFn: async () => answered(await api.GET('/api/admin/plugins/{id}', { params: { path: { id: upload.id } } })),
  });
  if (installed === undefined) return null;
  const removed = lost(installed.triggers.flatMap(addressesOf), upload.triggers.flatMap(addressesOf));
  const commands = lost(installed.triggers.flatMap(commandOf), upload.triggers.flatMap(commandOf));
  const version = installed.version ?? '';
  const lines = [
    ...(installed.name !== null && installed.name !== upload.name
      ? [t('review.otherName', { before: installed.name, name: upload.name })]
      : []),
    ...(upload.version === version ? [t('review.sameNumber', { version })] : []),
    ...(isLower(upload.version, version) ? [t('review.lower', { version })] : []),
    ...(removed.length > 0 ? [t('review.removed', { triggers: removed.join(', ') })] : []),
    ...(commands.length > 0 ? [t('review.removedCommands', { commands: commands.join(', ') })] : []),
  ];
  if (lines.length === 0) return null;
  return (
    <Alert color="orange" icon={<IconAlertTriangle aria-hidden />} title={t('review.replacedTitle')}>
      <List size="sm">
        {lines.map(line => (
          <List.Item key={line}>{line}</List.Item>
        ))}
      </List>
    </Alert>
  );
}

export function Section({ about, children, title }: { title: string; about?: string; children: React.ReactNode }) {
  return (
    <section>
      <Title order={2} size="h4" mb={about === undefined ? 'xs' : 2}>
        {title}
      </Title>
      {about !== undefined && (
        <Text size="sm" c="dimmed" mb="xs">
          {about}
        </Text>
      )}
      {children}
    </section>
  );
}
