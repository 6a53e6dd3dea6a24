import { type HttpTrigger, routeShape } from './manifest.ts';
import type { TriggerSettings } from './trigger-settings.ts';

/** A public trigger: its URL and the methods that need no login. */
export type PublicUrls = { trigger: string; methods: string[]; url: string };

/** What an administrator confirmed to make public: all triggers, or those with these names. */
export type AcceptPublic = true | readonly string[];

/** Whether a trigger needs no login (both allow flags off, no policy), as decided by `effectiveAccess`. */
export function isPublic(s: TriggerSettings): boolean {
  return s.enabled && !s.allowUserSession && !s.allowServiceKey && s.policyExpression === '';
}

/** The path at which a trigger is called. */
export const urlOf = (pluginId: string, trigger: HttpTrigger): string =>
  `/api/triggers/http/${pluginId}${trigger.path}`;

/** A plugin's triggers with their effective settings. */
export type TriggerAccess = ReadonlyArray<{ trigger: HttpTrigger; settings: TriggerSettings }>;

/** Each method of a trigger with the shape of its path. */
export const routesOf = ({ methods, path }: HttpTrigger): string[] => methods.map(m => `${m} ${routeShape(path)}`);

/** Whether some request path matches both patterns. */
export function haveCommonPath(a: string, b: string): boolean {
  const [of, other] = [a.split('/'), b.split('/')];
  return (
    of.length === other.length && of.every((s, k) => s === other[k] || s.startsWith(':') || other[k]?.startsWith(':'))
  );
}

/** Paths whose protected trigger was removed, and which a public trigger with a `:name` segment now answers. */
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
 * Methods and paths that are public after a change and were not before. That includes new paths of a public trigger,
 * and paths that only a removed trigger protected.
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
