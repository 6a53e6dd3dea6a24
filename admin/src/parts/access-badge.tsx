import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { type BadgeKind, StateBadge } from './state-badge.tsx';

type Access = Schemas['EffectiveAccess'];

const KINDS: ReadonlyArray<readonly [access: Access, kind: BadgeKind]> = [
  ['disabled', 'off'],
  ['public', 'open'],
  // The word of the API for a trigger that no caller can call.
  ['nobody', 'bad'],
];

/** Who gets in, all settings taken together. */
export function AccessBadge({ access, hasPolicy }: { access: Access; hasPolicy: boolean }) {
  const { t } = useTranslation();
  const kind = KINDS.find(([a]) => a === access)?.[1] ?? 'closed';
  const who = t(`access.effective.${access === 'nobody' ? 'none' : access}`);
  const more = hasPolicy && access !== 'public' && access !== 'disabled' ? ` ${t('access.andPolicy')}` : '';
  return <StateBadge kind={kind} label={`${who}${more}`} />;
}
