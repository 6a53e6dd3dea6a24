import { Button, Group, SegmentedControl, Stack, Text } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { IconBrowser, IconExternalLink } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { api, type Schemas } from '../api/client.ts';
import { confirmed } from '../api/questions.ts';
import { May } from '../app/may.tsx';
import { CopyText } from '../parts/copy.tsx';
import { Empty } from '../parts/empty.tsx';
import { Facts } from '../parts/facts.tsx';
import { LinkButton } from '../parts/links.tsx';
import { notifyProblem } from '../parts/problem.tsx';
import { bytesText, numberText } from '../parts/quantities.ts';
import { useSettingsChange } from '../parts/use-settings-change.ts';
import type { ReadPlugin } from './plugin.tsx';
import { Section } from './review.tsx';

/** The pages a plugin brings, and how far they are trusted. */
export default function PluginPages({ plugin, tag }: ReadPlugin) {
  return (
    <Stack gap="xl">
      <Frontend plugin={plugin} />
      <Trust plugin={plugin} tag={tag} />
    </Stack>
  );
}

function Frontend({ plugin }: { plugin: Schemas['Plugin'] }) {
  const { t } = useTranslation();
  const frontend = plugin.installed?.frontend ?? null;
  if (frontend === null || plugin.frontend_url === null)
    return (
      <Empty
        icon={IconBrowser}
        title={t('frontend.emptyTitle')}
        text={t('frontend.empty')}
        action={
          <LinkButton variant="light" to="/admin/plugins/upload">
            {t('plugins.upload')}
          </LinkButton>
        }
      />
    );
  return (
    <Section title={t('frontend.title')} about={t('frontend.about')}>
      <Stack align="flex-start">
        <Facts
          facts={[
            { label: t('frontend.address'), value: <CopyText value={location.origin + plugin.frontend_url} /> },
            { label: t('frontend.files'), value: numberText(frontend.files) },
            {
              label: t('common.size'),
              value: t('frontend.size', {
                packed: bytesText(frontend.packed_bytes),
                unpacked: bytesText(frontend.bytes),
              }),
            },
            { label: 'SHA-256', value: <CopyText value={frontend.sha256} /> },
          ]}
        />
        <Button
          component="a"
          href={plugin.frontend_url}
          target="_blank"
          rel="noopener"
          variant="default"
          leftSection={<IconExternalLink size={16} />}
        >
          {t('frontend.open')}
        </Button>
      </Stack>
    </Section>
  );
}

/** What the pages of a plugin may do, said in plain words. */
function Trust({ plugin, tag }: ReadPlugin) {
  const { t } = useTranslation();
  const isNarrow = useMediaQuery('(max-width: 30em)', false, { getInitialValueInEffect: false });
  const { done, sent } = useSettingsChange(plugin.id);
  const params = { path: { id: plugin.id }, header: { 'If-Match': tag } };
  const changed = async (work: Promise<unknown>): Promise<void> => {
    try {
      await sent(work);
      await done(t('config.saved'));
    } catch (problem) {
      notifyProblem(problem);
    }
  };
  const setTrust = async (trust: string): Promise<void> => {
    if (trust !== 'trusted' && trust !== 'sandboxed') return;
    const question = {
      title: t('trust.question', { name: plugin.name }),
      text: t('trust.warning'),
      action: t('trust.go'),
      isDangerous: true,
    };
    if (trust === 'trusted' && !(await confirmed(question))) return;
    await changed(api.PUT('/api/admin/plugins/{id}/html', { params, body: { trust } }));
  };
  const setFrontend = async (access: string): Promise<void> => {
    if (access !== 'public' && access !== 'session') return;
    const question = {
      title: t('trust.publicTitle', { name: plugin.name }),
      text: t('trust.publicText', { url: location.origin + (plugin.frontend_url ?? '') }),
      action: t('trust.publicGo'),
      isDangerous: true,
    };
    if (access === 'public' && !(await confirmed(question))) return;
    await changed(api.PUT('/api/admin/plugins/{id}/frontend', { params, body: { access } }));
  };
  return (
    <Section title={t('trust.title')} about={t('trust.about')}>
      <Stack>
        <Group>
          <Text size="sm" w={{ base: '100%', sm: 260 }}>
            {t('trust.html')}
          </Text>
          <May need="owner" isInline>
            <SegmentedControl
              orientation={isNarrow ? 'vertical' : 'horizontal'}
              value={plugin.html.trust}
              onChange={v => void setTrust(v)}
              aria-label={t('trust.html')}
              data={[
                { value: 'sandboxed', label: t('trust.sandboxed') },
                { value: 'trusted', label: t('trust.trusted') },
              ]}
            />
          </May>
        </Group>
        {plugin.frontend_url !== null && (
          <Group>
            <Text size="sm" w={{ base: '100%', sm: 260 }}>
              {t('trust.frontend')}
            </Text>
            <May need="access" isInline>
              <SegmentedControl
                orientation={isNarrow ? 'vertical' : 'horizontal'}
                value={plugin.frontend_access}
                onChange={v => void setFrontend(v)}
                aria-label={t('trust.frontend')}
                data={[
                  { value: 'session', label: t('trust.session') },
                  { value: 'public', label: t('trust.public') },
                ]}
              />
            </May>
          </Group>
        )}
      </Stack>
    </Section>
  );
}
