import { Group, Text, Tooltip } from '@mantine/core';
import { IconLock } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useId } from 'react';
import { useTranslation } from 'react-i18next';
import { answered, api, type Schemas } from '../api/client.ts';
import { useSession } from './session.ts';

export type Role = Schemas['AdminAccount']['roles'][number];
/** What an action needs: one of these scopes, or `owner` for what no key opens. */
export type Need =
  | 'people'
  | 'plugins:deploy'
  | 'plugins:accept'
  | 'access'
  | 'university'
  | 'operate'
  | 'admin'
  | 'owner';

/** The scopes of each role. */
export const useRoles = () =>
  useQuery({
    queryKey: ['admins', 'roles'],
    queryFn: async () => answered(await api.GET('/api/admin/admins/roles')),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Tells why the administrator may not do something; null when they may. Where there is no administrator yet, all is open. */
export function useRefusal(): (need: Need, plugin?: string) => string | null {
  const { t } = useTranslation();
  const admin = useSession().data?.admin;
  const roles = useRoles().data?.items;
  return (need, plugin) => {
    if (admin === undefined || admin.roles.includes('owner')) return null;
    const held = admin.scopes;
    const isNamed = (s: string): boolean =>
      plugin === undefined ? s.startsWith(`${need}:`) : s === `${need}:${plugin}`;
    if (held.some(s => s === need || isNamed(s))) return null;
    const sufficient = (roles ?? []).filter(r => r.role === 'owner' || r.scopes.some(s => s === need));
    const names = (list: readonly Role[]): string => list.map(r => t(`admins.role.${r}.title`)).join(', ');
    const isOtherPlugin = held.some(s => s.startsWith(`${need}:`));
    return t(isOtherPlugin ? 'may.otherPlugin' : 'may.refused', {
      needed: names(sufficient.map(r => r.role)),
      yours: names(admin.roles),
    });
  };
}

const PLAIN = { border: 0, margin: 0, padding: 0, minInlineSize: 0 } as const;

/**
 * Controls of an action. An administrator who may not use them sees them switched off, and why.
 *
 * @param isInline among other controls: the reason shows when one points at them, or reaches them with the keyboard
 */
export function May(props: { need: Need; plugin?: string; isInline?: boolean; children: ReactNode }) {
  const { children, isInline = false, need, plugin } = props;
  const id = useId();
  const refusal = useRefusal()(need, plugin);
  if (refusal === null) return children;
  const controls = (
    <fieldset disabled aria-describedby={id} style={PLAIN}>
      {!isInline && (
        <Group id={id} gap={6} mb="sm" wrap="nowrap" c="dimmed" role="note">
          <IconLock size={16} aria-hidden style={{ flexShrink: 0 }} />
          <Text size="sm">{refusal}</Text>
        </Group>
      )}
      {children}
    </fieldset>
  );
  if (!isInline) return controls;
  // What is switched off takes no focus: the frame around it does, so that the reason reaches keyboards and touch screens.
  return (
    <Tooltip label={refusal} events={{ hover: true, focus: true, touch: true }} multiline maw={280}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it holds the reason why the controls in it are switched off */}
      <fieldset tabIndex={0} id={id} aria-label={refusal} style={{ ...PLAIN, display: 'inline-block' }}>
        {controls}
      </fieldset>
    </Tooltip>
  );
}
