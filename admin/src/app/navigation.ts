import {
  type Icon,
  IconBadge,
  IconBell,
  IconBuildingBank,
  IconFiles,
  IconGauge,
  IconHelpCircle,
  IconHierarchy2,
  IconKey,
  IconListCheck,
  IconListDetails,
  IconMessage,
  IconPuzzle,
  IconServer2,
  IconShieldCheck,
  IconShieldLock,
  IconTruckDelivery,
  IconUserShield,
  IconUsers,
} from '@tabler/icons-react';
import type { en } from '../texts/en.ts';
import { type Need, useRefusal } from './may.tsx';

export type Destination = { to: string; label: `nav.${keyof typeof en.nav & string}`; icon: Icon; need?: Need };

type Group = { label: Destination['label'] | null; items: readonly Destination[] };

const NAVIGATION: readonly Group[] = [
  {
    label: null,
    items: [
      { to: '/admin/', label: 'nav.overview', icon: IconGauge },
      { to: '/admin/plugins', label: 'nav.plugins', icon: IconPuzzle },
      { to: '/admin/executions', label: 'nav.executions', icon: IconListCheck },
      { to: '/admin/files', label: 'nav.files', icon: IconFiles },
      { to: '/admin/trust', label: 'nav.trust', icon: IconShieldCheck },
    ],
  },
  {
    label: 'nav.access',
    items: [
      { to: '/admin/why', label: 'nav.why', icon: IconHelpCircle, need: 'people' },
      { to: '/admin/people', label: 'nav.people', icon: IconUsers, need: 'people' },
      { to: '/admin/roles', label: 'nav.roles', icon: IconBadge, need: 'people' },
      { to: '/admin/relationships', label: 'nav.relationships', icon: IconHierarchy2, need: 'people' },
      { to: '/admin/service-keys', label: 'nav.serviceKeys', icon: IconKey },
    ],
  },
  {
    label: 'nav.data',
    items: [
      { to: '/admin/university', label: 'nav.university', icon: IconBuildingBank },
      { to: '/admin/outbox', label: 'nav.outbox', icon: IconTruckDelivery },
      { to: '/admin/messages', label: 'nav.messages', icon: IconMessage },
      { to: '/admin/events', label: 'nav.events', icon: IconBell },
    ],
  },
  {
    label: 'nav.service',
    items: [
      { to: '/admin/administrators', label: 'nav.administrators', icon: IconUserShield },
      { to: '/admin/keys', label: 'nav.keys', icon: IconShieldLock },
      { to: '/admin/audit', label: 'nav.audit', icon: IconListDetails },
      { to: '/admin/system', label: 'nav.system', icon: IconServer2 },
    ],
  },
];

/** The screens an administrator may read, in groups, as the menu and the palette show them. */
export function useNavigation(): readonly Group[] {
  const refusal = useRefusal();
  return NAVIGATION.map(({ items, label }) => ({
    label,
    items: items.filter(({ need }) => need === undefined || refusal(need) === null),
  }));
}
