import { Badge } from '@mantine/core';
import {
  IconAlertTriangle,
  IconCheck,
  IconCircleDashed,
  IconClock,
  IconLock,
  IconWorld,
  IconX,
} from '@tabler/icons-react';

const KINDS = {
  good: { color: 'teal', icon: IconCheck },
  bad: { color: 'red', icon: IconX },
  warn: { color: 'orange', icon: IconAlertTriangle },
  wait: { color: 'blue', icon: IconClock },
  off: { color: 'gray', icon: IconCircleDashed },
  open: { color: 'grape', icon: IconWorld },
  closed: { color: 'blue', icon: IconLock },
} as const;

export type BadgeKind = keyof typeof KINDS;

/** A state in a word, with a sign: never by colour alone. */
export function StateBadge({ kind, label }: { kind: BadgeKind; label: string }) {
  const { color, icon: Sign } = KINDS[kind];
  return (
    <Badge
      color={color}
      variant="light"
      tt="none"
      leftSection={<Sign size={12} aria-hidden />}
      className="state-badge"
      styles={{ label: { whiteSpace: 'inherit' } }}
    >
      {label}
    </Badge>
  );
}
