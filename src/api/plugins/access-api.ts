import { z } from 'zod';
import type { CommandAccess, CommandDecision } from '../../authz/command-access.ts';
import type { GraphRole } from '../../authz/graph-roles.ts';
import type { Policies, PolicyVerdict } from '../../authz/policies.ts';
import { decideAccess, effectiveAccess } from '../../authz/trigger-access.ts';
import { callerKey } from '../../base/caller-key.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Database } from '../../db/database.ts';
import { findUser, type GlobalUser } from '../../identity/find-users.ts';
import type { InstalledPlugin, InstalledTrigger, PluginRegistry } from '../../plugins/registry.ts';
import type { Quarantine } from '../../records/quarantine.ts';
import type { Suspension } from '../../records/suspension.ts';
import { policyVerdict, verdictJson } from '../access/recorded-decision.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { id } from '../contract/fields.ts';
import type { Route } from '../contract/route.ts';
import { suspension, suspensionJson } from './plugin-json.ts';

export type AccessApiParts = {
  db: Database;
  registry: PluginRegistry;
  quarantine: Quarantine;
  policies: Policies;
  commandAccess: CommandAccess;
};

const question = z
  .strictObject({
    user: z.int().positive().describe('Id of the user'),
    plugin: z.string().min(1).max(64),
    trigger: z.string().min(1).max(64).optional(),
    command: z.string().min(1).max(64).optional(),
  })
  .refine(b => (b.trigger === undefined) !== (b.command === undefined), {
    path: ['trigger'],
    message: 'name a trigger or a command, one of them',
  });

/** What has to hold, by the codes that clients word. */
const STEPS = {
  plugin_installed: 'plugin installed',
  plugin_enabled: 'plugin enabled',
  trigger_exists: 'trigger exists',
  trigger_enabled: 'trigger enabled',
  user_sessions_accepted: 'user sessions accepted',
  not_suspended: 'not suspended',
  command_exists: 'command exists',
  command_enabled: 'command enabled',
  roles: 'roles',
  policy: 'policy',
} as const;
const STEP_CODES = [
  'plugin_installed',
  'plugin_enabled',
  'trigger_exists',
  'trigger_enabled',
  'user_sessions_accepted',
  'not_suspended',
  'command_exists',
  'command_enabled',
  'roles',
  'role',
  'policy',
] as const satisfies ReadonlyArray<keyof typeof STEPS | 'role'>;

const explanation = z
  .object({
    user: z.object({ id, external_id: z.string().nullable(), display_name: z.string() }),
    plugin: z.string(),
    trigger: z.string().optional(),
    command: z.string().optional(),
    allowed: z.boolean(),
    status: z.int().describe('The HTTP status the caller gets'),
    steps: z
      .array(
        z.object({
          code: z.enum(STEP_CODES).describe('What had to hold'),
          role: z
            .object({ kind: z.enum(['system', 'global', 'plugin']), role: z.string() })
            .nullable()
            .describe('The role that a command asks for'),
          step: z.string(),
          holds: z.boolean().nullable().describe('Null: not looked at, because a step before does not hold'),
          detail: z.string(),
        }),
      )
      .describe('Everything that has to hold, in order; the first that does not decides'),
    to_change: z.array(z.string()).describe('What would let the user in'),
    suspension: suspension.nullable().describe('What suspends the trigger for this user'),
    policy: policyVerdict.extend({ expression: z.string() }).nullable(),
  })
  .meta({ id: 'AccessExplanation' });

/** Why a user may or may not, step by step. */
export const access = resource('Access', 'Why a user may or may not call a trigger or run a command.', {
  explain: {
    method: 'POST',
    path: '/api/admin/access/explain',
    guard: 'admin',
    key: ['people', 'access'],
    summary: 'Explain whether a user may call a trigger or run a command',
    body: question,
    replies: { 200: explanation },
    refusals: ['not_found'],
    example: { body: { user: 7, plugin: 'hello', trigger: 'greet' } },
  },
});

/** One thing that had to hold. What was not looked at, because something before it did not hold, is `null`. */
type Step = {
  code: (typeof STEP_CODES)[number];
  role: { kind: GraphRole['kind']; role: string } | null;
  step: string;
  holds: boolean | null;
  detail: string;
};
/** A step, or the role that is one. */
type What = keyof typeof STEPS | GraphRole;

const namesOf = (what: What): Pick<Step, 'code' | 'role' | 'step'> =>
  typeof what === 'string'
    ? { code: what, role: null, step: STEPS[what] }
    : { code: 'role', role: { kind: what.kind, role: what.role }, step: roleText(what) };

/** The steps of a decision: the first one that does not hold decides. */
class Explanation {
  readonly steps: Step[] = [];
  readonly toChange: string[] = [];
  suspension: Suspension | null = null;
  /** The status a caller gets when a step does not hold. */
  status = 200;

  /** A step that has no answer: an earlier step refuses already, so nothing is asked for it. */
  leaveOpen(what: What): void {
    this.steps.push({ ...namesOf(what), holds: null, detail: 'not looked at' });
  }

  /** @returns whether it holds, and everything before it */
  add(what: What, holds: boolean, detail: string, status: number, toChange: string): boolean {
    if (this.status !== 200) {
      this.leaveOpen(what);
      return false;
    }
    this.steps.push({ ...namesOf(what), holds, detail });
    if (holds) return true;
    this.status = status;
    this.toChange.push(toChange);
    return false;
  }
}

/** A policy and what it said of the user. */
type Judged = { expression: string; verdict: PolicyVerdict };

const policyJson = ({ expression, verdict }: Judged) => ({ expression, ...verdictJson(verdict) });

function explainPlugin(told: Explanation, id: string, plugin: InstalledPlugin | undefined): boolean {
  const there = told.add(
    'plugin_installed',
    plugin !== undefined,
    plugin === undefined ? `plugin "${id}" is not installed` : `plugin "${id}" ${plugin.version} is installed`,
    404,
    `install plugin "${id}"`,
  );
  const enabled = plugin?.enabled === true;
  const on = told.add(
    'plugin_enabled',
    enabled,
    enabled ? 'it is enabled' : 'it is disabled',
    404,
    `POST /api/admin/plugins/${id}/enable`,
  );
  return there && on;
}

function explainPolicy(told: Explanation, expression: string, verdict: PolicyVerdict, where: string): void {
  const how: Record<PolicyVerdict['kind'], string> = {
    allowed: 'it is true for this user',
    denied: 'it is false for this user',
    failed: `it could not be evaluated: ${verdict.reason}`,
    unavailable: `the graph store does not answer: ${verdict.reason}`,
  };
  const asked = verdict.checks.map(c => `${c.check} is ${c.allowed}`).join(', ');
  told.add(
    'policy',
    verdict.kind === 'allowed',
    `${expression} - ${how[verdict.kind]}${asked === '' ? '' : `; the graph says ${asked}`}`,
    verdict.kind === 'unavailable' ? 503 : 403,
    verdict.kind === 'unavailable'
      ? 'bring the graph store back'
      : `give the user what the policy asks (POST /api/admin/policies/try shows every part), or change it: ${where}`,
  );
}

const roleText = (r: GraphRole): string =>
  r.kind === 'plugin' ? `plugin role ${r.pluginId}/${r.role}` : `${r.kind} role ${r.role}`;
const rolePath = (r: GraphRole): string =>
  r.kind === 'plugin' ? `plugin/${r.pluginId}/${r.role}` : `${r.kind}/${r.role}`;

const explain: Handle<typeof access.explain, AccessApiParts> = async (parts, { body }) => {
  const { command = '', plugin: pluginId, trigger, user: userId } = await body();
  const user = await findUser(parts.db, userId);
  if (user === undefined) throw new ServiceError('not_found', `there is no user ${userId}`);
  const told = new Explanation();
  const plugin = parts.registry.find(pluginId);
  explainPlugin(told, pluginId, plugin);
  const asked = { told, user, pluginId, plugin };
  const judged =
    trigger !== undefined ? await explainTrigger(parts, asked, trigger) : await explainCommand(parts, asked, command);
  return {
    status: 200,
    json: {
      user: { id: user.id, external_id: user.externalId, display_name: user.displayName },
      plugin: pluginId,
      ...(trigger === undefined ? { command } : { trigger }),
      allowed: told.status === 200,
      status: told.status,
      steps: told.steps,
      to_change: told.toChange,
      suspension: told.suspension === null ? null : suspensionJson(told.suspension),
      policy: judged === null ? null : policyJson(judged),
    },
  };
};

export const accessRoutes = (parts: AccessApiParts): Route[] => serve(access, parts, { explain });

/** Who asks for what, and the explanation so far. */
type Asked = { told: Explanation; user: GlobalUser; pluginId: string; plugin: InstalledPlugin | undefined };

function explainSuspension(quarantine: Quarantine, { plugin, pluginId, told, user }: Asked, name: string): void {
  const suspended =
    plugin && quarantine.find(plugin, name, callerKey({ kind: 'user', userId: user.id }, ''), Date.now());
  told.suspension = suspended ?? null;
  told.add(
    'not_suspended',
    suspended === undefined,
    suspended === undefined ? 'it is not suspended' : `suspended: ${suspended.cause}`,
    503,
    `POST /api/admin/plugins/${pluginId}/triggers/${name}/resume`,
  );
}

async function explainTrigger(
  { policies, quarantine }: AccessApiParts,
  { plugin, pluginId, told, user }: Asked,
  name: string,
): Promise<Judged | null> {
  const t: InstalledTrigger | undefined = plugin?.triggers.get(name);
  const where = `PUT /api/admin/plugins/${pluginId}/triggers/${name}/settings`;
  told.add(
    'trigger_exists',
    t !== undefined,
    t === undefined ? `there is no HTTP trigger "${name}"` : `${t.trigger.methods.join(', ')} ${t.trigger.path}`,
    404,
    `name one of ${[...(plugin?.triggers.keys() ?? [])].join(', ') || 'the triggers of an installed plugin'}`,
  );
  const s = t?.settings;
  const on = s?.enabled === true;
  told.add('trigger_enabled', on, on ? 'it is enabled' : 'it is disabled', 404, `${where} {"enabled": true}`);
  const access = s === undefined ? 'disabled' : effectiveAccess(s);
  const first = s === undefined ? null : decideAccess(s, 'user');
  told.add(
    'user_sessions_accepted',
    first?.kind === 'allow' || first?.kind === 'evaluate',
    access === 'public' ? 'the trigger is public: callers need no credential' : `the trigger lets in: ${access}`,
    403,
    `${where} {"allow_user_session": true}`,
  );
  explainSuspension(quarantine, { plugin, pluginId, told, user }, name);
  if (told.status !== 200 || s === undefined || first?.kind !== 'evaluate') {
    if (s !== undefined && s.policyExpression !== '') told.leaveOpen('policy');
    return null;
  }
  const verdict = await policies.decide(s.policyExpression, { kind: 'user', userId: user.id });
  explainPolicy(told, s.policyExpression, verdict, where);
  return { expression: s.policyExpression, verdict };
}

async function explainCommand(
  { commandAccess, quarantine }: AccessApiParts,
  { plugin, pluginId, told, user }: Asked,
  name: string,
): Promise<Judged | null> {
  const commands = plugin?.manifest.triggers.filter(t => t.type === 'messenger') ?? [];
  const there = commands.some(c => c.name === name);
  told.add(
    'command_exists',
    there,
    there ? `/${name}` : `there is no command "${name}"`,
    404,
    `name one of ${commands.map(c => c.name).join(', ') || 'the commands of an installed plugin'}`,
  );
  if (told.status !== 200) return null;
  const d: CommandDecision = await commandAccess.decide(user.id, pluginId, name);
  const where = `PUT /api/admin/plugins/${pluginId}/commands/${name}`;
  const { settings } = d;
  told.add(
    'command_enabled',
    settings.enabled,
    settings.enabled ? 'it is enabled' : 'it is disabled',
    403,
    `${where}/enabled {"enabled": true}`,
  );
  if (d.reason === 'unavailable' && d.policy === null)
    told.add('roles', false, `the graph store does not answer: ${d.detail}`, 503, 'bring the graph store back');
  for (const { held, role } of d.roles)
    told.add(
      role,
      held,
      held ? 'the user has it' : 'the user does not have it',
      403,
      `PUT /api/admin/users/${user.id}/roles/${rolePath(role)}, or ask for no such role: ${where}/roles`,
    );
  if (d.policy !== null) explainPolicy(told, settings.policyExpression, d.policy, `${where}/policy`);
  else if (settings.policyExpression !== '') told.leaveOpen('policy');
  explainSuspension(quarantine, { plugin, pluginId, told, user }, name);
  return d.policy === null ? null : { expression: settings.policyExpression, verdict: d.policy };
}
