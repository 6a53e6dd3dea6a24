import { notCurrent } from '../base/errors.ts';
import type { ChangeStatus } from '../db/notifications.ts';
import type { Graph } from '../graph/graph.ts';
import { type GraphCheck, GraphError } from '../graph/graph-store.ts';
import type { CommandSettings, CommandSettingsCache } from './command-settings.ts';
import { type GraphRole, roleObject } from './graph-roles.ts';
import type { Policies, PolicyVerdict } from './policies.ts';
import type { SubjectContexts } from './subject-context.ts';

/** A role a command requires, and whether the user has it. */
export type RoleAnswer = { role: GraphRole; held: boolean };

/** Whether a user may run a command, with all checks that were made. */
export type CommandDecision = {
  allowed: boolean;
  reason: 'open' | 'allowed' | 'disabled' | 'unknown_user' | 'roles' | 'policy' | 'policy_failed' | 'unavailable';
  /** The store that is unavailable, or why the policy failed; otherwise empty. */
  detail: string;
  roles: readonly RoleAnswer[];
  /** Null if the policy was not evaluated, or there is none. */
  policy: PolicyVerdict | null;
  settings: CommandSettings;
};

/** The roles a command requires, level by level (docs/authorization.md "Commands"). */
export function rolesOf(pluginId: string, s: CommandSettings): GraphRole[] {
  return [
    ...(s.systemRole === null ? [] : [{ kind: 'system', role: s.systemRole } as const]),
    ...s.globalRoles.map(role => ({ kind: 'global', role }) as const),
    ...(s.pluginRole === null ? [] : [{ kind: 'plugin', pluginId, role: s.pluginRole } as const]),
  ];
}

/**
 * Decides access to commands: first the roles, all levels in one call to the graph, then the policy
 * (docs/authorization.md "Commands").
 */
export class CommandAccess {
  readonly #commands: CommandSettingsCache;
  readonly #contexts: SubjectContexts;
  readonly #policies: Policies;
  readonly #graph: Pick<Graph, 'check'>;
  readonly #changes: ChangeStatus;

  constructor(parts: {
    commands: CommandSettingsCache;
    contexts: SubjectContexts;
    policies: Policies;
    graph: Pick<Graph, 'check'>;
    changes: ChangeStatus;
  }) {
    this.#commands = parts.commands;
    this.#contexts = parts.contexts;
    this.#policies = parts.policies;
    this.#graph = parts.graph;
    this.#changes = parts.changes;
  }

  /**
   * @param userId null for a messenger account that is not linked, which may run the commands that are open to everyone
   */
  async decide(userId: number | null, pluginId: string, command: string): Promise<CommandDecision> {
    const settings = await this.#commands.find(pluginId, command);
    const say = (
      reason: CommandDecision['reason'],
      more: Partial<Pick<CommandDecision, 'detail' | 'roles' | 'policy'>> = {},
    ): CommandDecision => ({
      allowed: reason === 'open' || reason === 'allowed',
      reason,
      detail: '',
      roles: [],
      policy: null,
      settings,
      ...more,
    });
    if (!settings.enabled) return say('disabled');
    const wanted = rolesOf(pluginId, settings);
    if (wanted.length === 0 && settings.policyExpression === '') return say('open');
    if (!(await this.#changes.becomesCurrent())) return say('unavailable', { detail: notCurrent().message });
    if (userId === null) return say('unknown_user');
    const context = this.#contexts.peek(userId) ?? (await this.#contexts.load(userId, false));
    if (context === null) return say('unknown_user');
    let roles: RoleAnswer[];
    try {
      roles = await this.#askRoles(wanted, context.user.external_id);
    } catch (error) {
      if (!(error instanceof GraphError)) throw error;
      return say('unavailable', { detail: error.message });
    }
    if (roles.some(r => !r.held)) return say('roles', { roles });
    if (settings.policyExpression === '') return say('allowed', { roles });
    const policy = await this.#policies.decide(settings.policyExpression, { kind: 'user', userId });
    const reasons = {
      allowed: 'allowed',
      denied: 'policy',
      failed: 'policy_failed',
      unavailable: 'unavailable',
    } as const;
    return say(reasons[policy.kind], { roles, policy, detail: policy.reason });
  }

  async #askRoles(wanted: readonly GraphRole[], externalId: string): Promise<RoleAnswer[]> {
    // A user without a university record has no roles in the graph.
    if (externalId === '') return wanted.map(role => ({ role, held: false }));
    const check = (role: GraphRole): GraphCheck => ({
      ...roleObject(role),
      permission: 'is_member',
      subjectType: 'user',
      subjectId: externalId,
    });
    const held = await Promise.all(wanted.map(role => this.#graph.check(check(role))));
    return wanted.map((role, k) => ({ role, held: held[k] === true }));
  }
}
