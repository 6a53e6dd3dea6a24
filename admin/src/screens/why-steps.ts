import type { TFunction } from 'i18next';
import type { Schemas } from '../api/client.ts';

export type Step = Schemas['AccessExplanation']['steps'][number];
type StepName = 'installed' | 'pluginOn' | 'exists' | 'on' | 'users' | 'running' | 'policy' | 'roles';

/** Steps of a decision with the names of their texts. */
export const STEP_NAME: Readonly<Record<Step['code'], StepName>> = {
  plugin_installed: 'installed',
  plugin_enabled: 'pluginOn',
  trigger_exists: 'exists',
  trigger_enabled: 'on',
  user_sessions_accepted: 'users',
  not_suspended: 'running',
  command_exists: 'exists',
  command_enabled: 'on',
  roles: 'roles',
  role: 'roles',
  policy: 'policy',
};

/** What has to hold at a step. */
export const stepText = ({ code, role }: Step, t: TFunction): string =>
  role === null ? t(`why.step.${STEP_NAME[code]}`) : t(`why.role.${role.kind}`, { role: role.role });

/** Why a step does not hold. */
export const becauseText = ({ code, role }: Step, t: TFunction): string =>
  role === null ? t(`why.because.${STEP_NAME[code]}`) : t('why.because.role', { role: role.role });
