import { z } from 'zod';
import type { CommandAccess, CommandDecision } from '../authz/command-access.ts';
import type { GraphRole } from '../authz/graph-roles.ts';
import type { Policies, PolicyVerdict } from '../authz/policies.ts';
import { decideAccess, effectiveAccess } from '../authz/trigger-access.ts';
import { callerKey } from '../base/caller-key.ts';
import { ServiceError } from '../base/errors.ts';
import type { Database } from '../db/database.ts';
import { jsonReply } from '../http/message.ts';
import { findUser, type GlobalUser } from '../identity/users.ts';
import type { InstalledPlugin, InstalledTrigger, PluginRegistry } from '../plugins/registry.ts';
import type { Quarantine } from '../records/quarantine.ts';
import { parseBody } from './body.ts';
import type { Route } from './route.ts';

export type AccessApiParts = {
  db: Database;
  registry: PluginRegistry;
  quarantine: Quarantine;
  policies: Policies;
  commandAccess: CommandAccess;
};

const explainBody = z
  .strictObject({
    user: z.int().positive(),
    plugin: z.string().min(1).max(64),
    trigger: z.string().min(1).max(64).optional(),
    command: z.string().min(1).max(64).optional(),
  })
  .refine(b => (b.trigger === undefined) !== (b.command === undefined), {
    path: ['trigger'],
    message: 'name a trigger or a command, one of them',
  });

/** One thing that had to hold. What was not looked at, because something before it did not hold, is `null`. */
type Step = { step: string; holds: boolean | null; detail: string };

/** A decision being told: the first step that does not hold decides. */
class Story {
  readonly steps: Step[] = [];
  readonly toChange: string[] = [];
  /** The status a caller gets when a step does not hold. */
  status = 200;

  /** A step that has no answer: an earlier step refuses already, so nothing is asked for it. */
  leaveOpen(step: string): void {
    this.steps.push({ step, holds: null, detail: 'not looked at' });
  }

  /** @returns whether it holds, and everything before it */
  tell(step: string, holds: boolean, detail: string, status: number, toChange: string): boolean {
    if (this.status !== 200) {
      this.leaveOpen(step);
      return false;
    }
    this.steps.push({ step, holds, detail });
    if (holds) return true;
    this.status = status;
    this.toChange.push(toChange);
    return false;
  }
}

const policyJson = (v: PolicyVerdict) => ({
  verdict: v.kind,
  reason: v.reason === '' ? null : v.reason,
  graph_rounds: v.rounds,
  graph_checks: v.checks,
  context_age_ms: v.contextAgeMs,
});

function tellPlugin(story: Story, id: string, plugin: InstalledPlugin | undefined): boolean {
  const there = story.tell(
    'plugin installed',
    plugin !== undefined,
    plugin === undefined ? `plugin "${id}" is not installed` : `plugin "${id}" ${plugin.version} is installed`,
    404,
    `install plugin "${id}"`,
  );
  const enabled = plugin?.enabled === true;
  const on = story.tell(
    'plugin enabled',
    enabled,
    enabled ? 'it is enabled' : 'it is disabled',
    404,
    `POST /api/admin/plugins/${id}/enable`,
  );
  return there && on;
}

function tellPolicy(story: Story, expression: string, verdict: PolicyVerdict, where: string): void {
  const how: Record<PolicyVerdict['kind'], string> = {
    allowed: 'it is true for this user',
    denied: 'it is false for this user',
    failed: `it could not be evaluated: ${verdict.reason}`,
    unavailable: `the graph store does not answer: ${verdict.reason}`,
  };
  const asked = verdict.checks.map(c => `${c.check} is ${c.allowed}`).join(', ');
  story.tell(
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

/** Why a user may or may not, step by step. */
export function accessRoutes(parts: AccessApiParts): Route[] {
  const { commandAccess, db, policies, quarantine, registry } = parts;

  async function explainTrigger(story: Story, user: GlobalUser, pluginId: string, name: string) {
    const plugin = registry.find(pluginId);
    tellPlugin(story, pluginId, plugin);
    const t: InstalledTrigger | undefined = plugin?.triggers.get(name);
    const where = `PUT /api/admin/plugins/${pluginId}/triggers/${name}/settings`;
    story.tell(
      'trigger exists',
      t !== undefined,
      t === undefined ? `there is no HTTP trigger "${name}"` : `${t.trigger.methods.join(', ')} ${t.trigger.path}`,
      404,
      `name one of ${[...(plugin?.triggers.keys() ?? [])].join(', ') || 'the triggers of an installed plugin'}`,
    );
    const s = t?.settings;
    const on = s?.enabled === true;
    story.tell('trigger enabled', on, on ? 'it is enabled' : 'it is disabled', 404, `${where} {"enabled": true}`);
    const access = s === undefined ? 'disabled' : effectiveAccess(s);
    const first = s === undefined ? null : decideAccess(s, 'user');
    story.tell(
      'user sessions accepted',
      first?.kind === 'allow' || first?.kind === 'evaluate',
      access === 'public' ? 'the trigger is public: callers need no credential' : `the trigger lets in: ${access}`,
      403,
      `${where} {"allow_user_session": true}`,
    );
    const suspended =
      plugin && quarantine.find(plugin, name, callerKey({ kind: 'user', userId: user.id }, ''), Date.now());
    story.tell(
      'not suspended',
      suspended === undefined,
      suspended === undefined ? 'it is not suspended' : `suspended: ${suspended.cause}`,
      503,
      `POST /api/admin/plugins/${pluginId}/triggers/${name}/resume`,
    );
    if (story.status !== 200 || s === undefined || first?.kind !== 'evaluate') {
      if (s !== undefined && s.policyExpression !== '') story.leaveOpen('policy');
      return null;
    }
    const verdict = await policies.decide(s.policyExpression, { kind: 'user', userId: user.id });
    tellPolicy(story, s.policyExpression, verdict, where);
    return verdict;
  }

  async function explainCommand(story: Story, user: GlobalUser, pluginId: string, name: string) {
    const plugin = registry.find(pluginId);
    tellPlugin(story, pluginId, plugin);
    const commands = plugin?.manifest.triggers.filter(t => t.type === 'messenger') ?? [];
    const there = commands.some(c => c.name === name);
    story.tell(
      'command exists',
      there,
      there ? `/${name}` : `there is no command "${name}"`,
      404,
      `name one of ${commands.map(c => c.name).join(', ') || 'the commands of an installed plugin'}`,
    );
    if (story.status !== 200) return null;
    const d: CommandDecision = await commandAccess.decide(user.id, pluginId, name);
    const where = `PUT /api/admin/plugins/${pluginId}/commands/${name}`;
    const { settings } = d;
    story.tell(
      'command enabled',
      settings.enabled,
      settings.enabled ? 'it is enabled' : 'it is disabled',
      403,
      `${where}/enabled {"enabled": true}`,
    );
    if (d.reason === 'unavailable' && d.policy === null)
      story.tell('roles', false, `the graph store does not answer: ${d.detail}`, 503, 'bring the graph store back');
    for (const { held, role } of d.roles)
      story.tell(
        roleText(role),
        held,
        held ? 'the user has it' : 'the user does not have it',
        403,
        `PUT /api/admin/users/${user.id}/roles/${rolePath(role)}, or ask for no such role: ${where}/roles`,
      );
    if (d.policy !== null) tellPolicy(story, settings.policyExpression, d.policy, `${where}/policy`);
    else if (settings.policyExpression !== '') story.leaveOpen('policy');
    return d.policy;
  }

  return [
    {
      method: 'POST',
      path: '/api/admin/access/explain',
      guard: 'admin',
      key: ['read', 'access'],
      async handle({ json }) {
        const body = parseBody(explainBody, await json());
        const user = await findUser(db, body.user);
        if (user === undefined) throw new ServiceError('not_found', `there is no user ${body.user}`);
        const story = new Story();
        const verdict =
          body.trigger !== undefined
            ? await explainTrigger(story, user, body.plugin, body.trigger)
            : await explainCommand(story, user, body.plugin, body.command ?? '');
        return jsonReply(200, {
          user: { id: user.id, external_id: user.externalId, display_name: user.displayName },
          plugin: body.plugin,
          ...(body.trigger === undefined ? { command: body.command } : { trigger: body.trigger }),
          allowed: story.status === 200,
          status: story.status,
          steps: story.steps,
          to_change: story.toChange,
          policy: verdict === null ? null : policyJson(verdict),
        });
      },
    },
  ];
}
