import { ServiceError } from '../base/errors.ts';
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

/** Whether some request path matches both patterns. */
function haveCommonPath(a: string, b: string): boolean {
  const [of, other] = [a.split('/'), b.split('/')];
  return (
    of.length === other.length && of.every((s, k) => s === other[k] || s.startsWith(':') || other[k]?.startsWith(':'))
  );
}

/** Protected paths whose trigger is gone, and that a public trigger with a `:name` segment answers from now on. */
function uncovered(pluginId: string, before: TriggerAccess, after: TriggerAccess): PublicUrls[] {
  const own = new Set(after.flatMap(t => routesOf(t.trigger)));
  return before.flatMap(({ settings, trigger }) => {
    if (isPublic(settings)) return [];
    const url = urlOf(pluginId, trigger);
    const urls = new Map<string, PublicUrls>();
    for (const [k, method] of trigger.methods.entries()) {
      if (own.has(routesOf(trigger)[k] ?? '')) continue;
      for (const { settings: s, trigger: other } of after) {
        if (!isPublic(s) || !other.methods.includes(method) || !other.path.includes('/:')) continue;
        if (!haveCommonPath(other.path, trigger.path)) continue;
        urls.set(other.name, { trigger: other.name, methods: [...(urls.get(other.name)?.methods ?? []), method], url });
      }
    }
    return [...urls.values()];
  });
}

/**
 * What is public after a change and was not before it, by method and path. A new path of a public trigger counts, and so does a path that only
 * a removed trigger protected.
 */
export function becomingPublic(pluginId: string, before: TriggerAccess, after: TriggerAccess): PublicUrls[] {
  const open = new Set(before.flatMap(t => (isPublic(t.settings) ? routesOf(t.trigger) : [])));
  const opened = after.flatMap(({ settings, trigger }) => {
    if (!isPublic(settings)) return [];
    const methods = trigger.methods.filter((_, k) => !open.has(routesOf(trigger)[k] ?? ''));
    return methods.length === 0 ? [] : [{ trigger: trigger.name, methods, url: urlOf(pluginId, trigger) }];
  });
  return [...opened, ...uncovered(pluginId, before, after)];
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
