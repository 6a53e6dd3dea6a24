import { ServiceError } from '../errors.ts';
import { type HttpTrigger, routeShape } from './manifest.ts';
import type { TriggerSettings } from './trigger-settings.ts';

/** Addresses that anybody may call without a login: one trigger with its methods. */
export type PublicUrls = { trigger: string; methods: string[]; url: string };

/** What an administrator confirmed to open to everybody: everything, or the triggers of these names. */
export type AcceptPublic = true | readonly string[];

/** Whether everybody gets in without a login (both allow flags off, no policy), as `effectiveAccess` says. */
export function isPublic(s: TriggerSettings): boolean {
  return s.enabled && !s.allowUserSession && !s.allowServiceKey && s.policyExpression === '';
}

/** Where a trigger is called. */
export const urlOf = (pluginId: string, trigger: HttpTrigger): string =>
  `/api/triggers/http/${pluginId}${trigger.path}`;

/** A plugin's triggers at one moment, with the settings that hold for them. */
export type TriggerAccess = ReadonlyArray<{ trigger: HttpTrigger; settings: TriggerSettings }>;

const routesOf = ({ methods, path }: HttpTrigger): string[] => methods.map(m => `${m} ${routeShape(path)}`);

/** What is public after a change and was not before it, by method and path: a new path of a public trigger counts. */
export function becomingPublic(pluginId: string, before: TriggerAccess, after: TriggerAccess): PublicUrls[] {
  const open = new Set(before.flatMap(t => (isPublic(t.settings) ? routesOf(t.trigger) : [])));
  return after.flatMap(({ settings, trigger }) => {
    if (!isPublic(settings)) return [];
    const methods = trigger.methods.filter((_, k) => !open.has(routesOf(trigger)[k] ?? ''));
    return methods.length === 0 ? [] : [{ trigger: trigger.name, methods, url: urlOf(pluginId, trigger) }];
  });
}

/**
 * A trigger is never public by accident: an administrator confirms each one.
 *
 * @throws ServiceError `confirmation_required` that names the URLs
 */
export function requirePublicAccepted(becoming: readonly PublicUrls[], accepted: AcceptPublic): void {
  const open = accepted === true ? [] : becoming.filter(p => !accepted.includes(p.trigger));
  if (open.length === 0) return;
  const names = open.map(p => p.trigger);
  throw new ServiceError(
    'confirmation_required',
    `this opens to everybody, without a login: ${open.map(p => `${p.methods.join(', ')} ${p.url}`).join('; ')}. Send "accept_public": true to confirm`,
    {
      errors: [{ pointer: '/accept_public', message: `must be true or name ${names.join(', ')}` }],
      extra: { becomes_public: open },
    },
  );
}
