import { isDeepStrictEqual } from 'node:util';
import { ServiceError } from '../base/errors.ts';
import { type Manifest, routeShape } from './manifest.ts';
import { type NetworkRules, NO_RULES } from './network-rules.ts';
import { haveCommonPath, isPublic, type PublicUrls, routesOf, type TriggerAccess, urlOf } from './public-access.ts';
import type { TriggerSettings } from './trigger-settings.ts';

/**
 * What an installation widens: rights a plugin gains, and protection its callers' data loses. One list, which the review shows, which
 * decides what a key may install, and which an administrator confirms (docs/access.md "What an installation widens").
 */
export const WIDENING_KINDS = ['permission', 'network', 'database', 'frontend', 'html', 'policy', 'public'] as const;

export type Widening = {
  kind: (typeof WIDENING_KINDS)[number];
  /** The permission, the database or the trigger; empty where the kind says it all. */
  name: string;
  message: string;
};

/** A command with what protects it: its policy and roles in words, empty when every user may run it. */
export type GuardedCommand = { name: string; isEnabled: boolean; guard: string };

/** One side of an installation. */
export type Installable = {
  manifest: Manifest;
  permissions: readonly string[];
  network: NetworkRules;
  /** Connection strings by logical name. */
  databases: Readonly<Record<string, string>>;
  hasFrontend: boolean;
  triggers: TriggerAccess;
  commands: readonly GuardedCommand[];
};

export type Upgrade = {
  pluginId: string;
  /** Undefined when nothing is installed. */
  before: Installable | undefined;
  after: Installable;
  /** URLs that need no login from now on. */
  public: readonly PublicUrls[];
  /** Whether script of plugins runs on the origin of the service. */
  sharesOrigin: boolean;
  /** Whether answers of the plugin's triggers are sent without the sandbox. */
  htmlTrusted: boolean;
  /** Triggers whose access the administrator gives with the installation. */
  said: ReadonlySet<string>;
};

/** What protected a trigger that the other does not have; null when the other lets in no one new. */
function lost(before: TriggerSettings, after: TriggerSettings): string | null {
  // A trigger that becomes public stands in a list of its own, and a public one had nothing to lose.
  if (!after.enabled || isPublic(after) || isPublic(before)) return null;
  if (!before.enabled) return 'was disabled';
  if (before.policyExpression !== '' && after.policyExpression !== before.policyExpression)
    return `had the policy ${before.policyExpression}`;
  if (!before.allowUserSession && after.allowUserSession) return 'was not for users';
  if (!before.allowServiceKey && after.allowServiceKey) return 'was not for service keys';
  return null;
}

/** Triggers that answer, from now on, what a stricter one answered. */
function lostRoutes({ after, before, pluginId, said }: Upgrade): Widening[] {
  const [old, fresh] = [before?.triggers ?? [], after.triggers];
  const [oldRoutes, freshRoutes] = [old, fresh].map(all => new Set(all.flatMap(t => routesOf(t.trigger))));
  return fresh.flatMap(({ settings, trigger }) => {
    if (said.has(trigger.name)) return [];
    for (const { settings: was, trigger: other } of old) {
      const what = lost(was, settings);
      if (what === null || !haveCommonPath(other.path, trigger.path)) continue;
      for (const method of trigger.methods.filter(m => other.methods.includes(m))) {
        const [now, then] = [`${method} ${routeShape(trigger.path)}`, `${method} ${routeShape(other.path)}`];
        // Each still answers its own.
        if (now !== then && oldRoutes?.has(now) === true && freshRoutes?.has(then) === true) continue;
        const message = `${method} ${urlOf(pluginId, other)} ${what}, and trigger "${trigger.name}" answers it without`;
        return [{ kind: 'policy' as const, name: trigger.name, message }];
      }
    }
    return [];
  });
}

type TriggerType = Installable['manifest']['triggers'][number]['type'];

/** New triggers and commands that may be old ones under another name, without what protected these. */
function lostNames({ after, before, said }: Upgrade): Widening[] {
  if (before === undefined) return [];
  // A trigger of the one kind that takes the name of one of the other does not stand for it.
  const isIn = ({ manifest }: Installable, type: TriggerType, name: string): boolean =>
    manifest.triggers.some(t => t.type === type && t.name === name);
  const isNew = (type: TriggerType, name: string): boolean => !isIn(before, type, name) && !said.has(name);
  const isGone = (type: TriggerType, name: string): boolean => !isIn(after, type, name);
  const triggers = after.triggers.flatMap(({ settings, trigger: { name } }): Widening[] => {
    const gone = before.triggers.find(t => isGone('http', t.trigger.name) && lost(t.settings, settings) !== null);
    if (gone === undefined || !isNew('http', name)) return [];
    return [renamed('trigger', gone.trigger.name, lost(gone.settings, settings) ?? '', name)];
  });
  const guarded = before.commands.find(c => isGone('messenger', c.name) && (!c.isEnabled || c.guard !== ''));
  const commands = after.commands
    .filter(c => isNew('messenger', c.name) && c.isEnabled && c.guard === '')
    .flatMap(c =>
      guarded === undefined
        ? []
        : [renamed('command', guarded.name, guarded.isEnabled ? `had ${guarded.guard}` : 'was disabled', c.name)],
    );
  return [...triggers, ...commands];
}

const renamed = (what: string, old: string, had: string, name: string): Widening => ({
  kind: 'policy',
  name,
  message: `${what} "${old}" ${had} and is gone; the new ${what} "${name}" starts without`,
});

/** All that an installation widens, in the order of `WIDENING_KINDS`. */
export function wideningOf(upgrade: Upgrade): Widening[] {
  const { after, before } = upgrade;
  const found: Widening[] = after.permissions
    .filter(p => before?.permissions.includes(p) !== true)
    .map(name => ({ kind: 'permission', name, message: `the new permission ${name}` }));
  if (!isDeepStrictEqual(after.network, before?.network ?? NO_RULES))
    found.push({ kind: 'network', name: '', message: 'which hosts the plugin may reach (config.network)' });
  for (const [name, address] of Object.entries(after.databases))
    if (before === undefined || !Object.hasOwn(before.databases, name) || before.databases[name] !== address)
      found.push({ kind: 'database', name, message: `the address of the database "${name}"` });
  if (after.hasFrontend && before?.hasFrontend !== true && upgrade.sharesOrigin)
    found.push({
      kind: 'frontend',
      name: '',
      message: 'a first frontend, whose scripts run on the origin of this service',
    });
  const old = new Set(before?.triggers.map(t => t.trigger.name));
  const added = after.triggers.map(t => t.trigger.name).filter(name => !old.has(name));
  if (upgrade.htmlTrusted && before !== undefined && added.length > 0)
    found.push({
      kind: 'html',
      name: '',
      message: `new triggers (${added.join(', ')}) whose pages run with the rights of users, as those of this plugin are trusted`,
    });
  const named = new Map([...lostNames(upgrade), ...lostRoutes(upgrade)].map(w => [w.name, w]));
  found.push(...named.values());
  for (const p of upgrade.public)
    found.push({
      kind: 'public',
      name: p.trigger,
      message: `${p.methods.join(', ')} ${p.url} becomes public, without a login`,
    });
  return found;
}

/** Widenings that an administrator has confirmed. `true`: all of them. */
export type Accepted = {
  permissions: true | readonly string[];
  /** Triggers that become public. */
  public: true | readonly string[];
  /** The other kinds that were confirmed: `frontend`, `html`, or `policy:` and the name of the trigger. */
  widening: true | readonly string[];
};

const names = (given: true | readonly string[], name: string): boolean => given === true || given.includes(name);

/**
 * Requires that an administrator has confirmed what an upgrade widens. What a first installation asks for stands in its review, and what
 * the request itself gives (network, databases) needs no second yes; what becomes public always does.
 *
 * @throws ServiceError `permissions_not_accepted`; `confirmation_required` with the URLs and all else that is open
 */
export function requireAccepted(
  found: readonly Widening[],
  becoming: readonly PublicUrls[],
  isUpgrade: boolean,
  accepted: Accepted,
): void {
  const permissions = isUpgrade ? found.filter(w => w.kind === 'permission').map(w => w.name) : [];
  const open = permissions.filter(p => !names(accepted.permissions, p));
  if (open.length > 0)
    throw new ServiceError(
      'permissions_not_accepted',
      `this version asks for permissions the installed one does not have: ${open.join(', ')}`,
      {
        errors: [
          { pointer: '/accept_permissions', message: `must be true or name ${open.join(', ')}`, code: 'not_accepted' },
        ],
        extra: { new_permissions: permissions },
      },
    );
  requireConfirmed(
    becoming.filter(p => !names(accepted.public, p.trigger)),
    isUpgrade ? found.filter(w => CONFIRMED.has(w.kind) && !names(accepted.widening, keyOf(w))) : [],
  );
}

const CONFIRMED: ReadonlySet<string> = new Set(['frontend', 'html', 'policy'] satisfies Array<Widening['kind']>);

/** The word that confirms one of these. */
const keyOf = (w: Widening): string => (w.name === '' ? w.kind : `${w.kind}:${w.name}`);
const messages = (of: readonly Widening[]): string => of.map(w => w.message).join('; ');

/** @throws ServiceError `confirmation_required` when anything is left to confirm */
export function requireConfirmed(open: readonly PublicUrls[], wider: readonly Widening[]): void {
  if (open.length + wider.length === 0) return;
  const parts: Array<[string, string, string[]]> = [];
  if (open.length > 0)
    parts.push([
      'accept_public',
      `this becomes public, without a login: ${open.map(p => `${p.methods.join(', ')} ${p.url}`).join('; ')}`,
      open.map(p => p.trigger),
    ]);
  if (wider.length > 0)
    parts.push(['accept_widening', `this version widens what is installed: ${messages(wider)}`, wider.map(keyOf)]);
  throw new ServiceError(
    'confirmation_required',
    parts.map(([member, what]) => `${what}. Send "${member}": true to confirm`).join('. '),
    {
      errors: parts.map(([member, , which]) => ({
        pointer: `/${member}`,
        message: `must be true or name ${which.join(', ')}`,
        code: 'not_accepted',
      })),
      extra: { becomes_public: open, widens: wider },
    },
  );
}
