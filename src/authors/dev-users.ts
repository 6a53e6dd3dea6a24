import type { Service } from '../app/service.ts';
import type { Actor } from '../audit/audit-log.ts';
import { createRelationships, deleteRelationship } from '../authz/relationships.ts';
import { messageOf, OperatorError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import { type GraphSchema, readGraphSchema } from '../graph/graph-schema.ts';
import { type Tuple, tupleKey } from '../graph/tuple.ts';
import { findUser } from '../identity/find-users.ts';
import { grantUserRole, listUserRoles, revokeUserRole } from '../identity/user-roles.ts';
import { changeUser } from '../identity/users.ts';
import { listRelationships } from '../outbox/mirror.ts';
import { type DevUser, PROJECT_FILE } from '../projects/project.ts';
import { DEV_LOCALE } from './dev-front.ts';

/**
 * Users of `plugin dev` with the roles, groups and attributes that `plugin-host.json` gives them: they are written where
 * an administrator would write them, so that policies and roles decide as in production.
 */

const BY: Actor = { kind: 'command_line', userId: null, name: 'plugin dev', requestId: '', address: '' };
/** A relationship as it is written in `plugin-host.json`: `faculty:physics#dean`. */
const RELATIONSHIP = /^(\w+):([^#]+)#(\w+)$/;

const externalIdOf = (id: number, { external_id }: DevUser): string => external_id ?? `dev-${id}`;

function tuplesOf(id: number, user: DevUser): Tuple[] {
  const subject = { subjectType: 'user', subjectId: externalIdOf(id, user), subjectRelation: '' };
  const groups = user.groups.map(group => ({
    resourceType: 'study_group',
    resourceId: group,
    relation: 'member',
    ...subject,
  }));
  const others = user.relationships.map(text => {
    const [, resourceType = '', resourceId = '', relation = ''] = RELATIONSHIP.exec(text) ?? [];
    return { resourceType, resourceId, relation, ...subject };
  });
  return [...groups, ...others];
}

/** @throws OperatorError that names what the graph does not know */
function assertTuples(schema: GraphSchema, id: number, user: DevUser): void {
  for (const tuple of tuplesOf(id, user)) {
    const [problem] = schema.problems(tuple);
    if (problem !== undefined)
      throw new OperatorError(
        `${PROJECT_FILE}: /dev/users/${id}: "${tuple.resourceType}:${tuple.resourceId}#${tuple.relation}" is no relationship a user can have: ${problem.pointer.slice(1)} ${problem.message}`,
      );
  }
}

export class DevUsers {
  readonly #users: ReadonlyMap<number, DevUser>;

  /** @throws OperatorError that says which relationship cannot be */
  constructor(users: ReadonlyMap<number, DevUser>) {
    this.#users = users;
    const schema = readGraphSchema();
    for (const [id, user] of users) assertTuples(schema, id, user);
  }

  /** Gives a user exactly what the file says; one it does not name stays as it is. */
  async give(service: Pick<Service, 'authz'>, db: Database, id: number): Promise<void> {
    const user = this.#users.get(id);
    if (user === undefined) return;
    try {
      await giveRoles(db, id, user);
      await giveRelationships(service, db, id, user);
    } catch (error) {
      throw new OperatorError(`${PROJECT_FILE}: /dev/users/${id}: ${messageOf(error)}`, { cause: error });
    }
  }
}

async function giveRoles(db: Database, id: number, user: DevUser): Promise<void> {
  const wanted = new Set(user.roles);
  for (const { role } of await listUserRoles(db, id)) if (!wanted.has(role)) await revokeUserRole(db, id, role, BY);
  for (const role of wanted) await grantUserRole(db, id, role, BY);
}

async function giveRelationships(
  { authz }: Pick<Service, 'authz'>,
  db: Database,
  id: number,
  user: DevUser,
): Promise<void> {
  const wanted = new Map(tuplesOf(id, user).map(tuple => [tupleKey(tuple), tuple]));
  const before = (await findUser(db, id))?.externalId ?? null;
  const held =
    before === null
      ? []
      : await listRelationships(db, { subjectType: 'user', subjectId: before }, null, LIMITS.outboxTuplesMax);
  for (const { tuple } of held) if (!wanted.has(tupleKey(tuple))) await deleteRelationship(db, authz.schema, tuple, BY);
  await changeUser(
    db,
    id,
    {
      externalId: externalIdOf(id, user),
      ...(user.name === undefined ? {} : { displayName: user.name }),
      locale: user.locale ?? DEV_LOCALE,
      primaryChannel: user.primary_channel ?? null,
      nationalityType: user.nationality_type ?? null,
      fundingType: user.funding_type ?? null,
      educationForm: user.education_form ?? null,
    },
    BY,
    // The simulated host has no data of a university.
    async () => new Set(),
  );
  if (wanted.size === 0) return;
  const appended = await createRelationships(db, authz.schema, [...wanted.values()], BY);
  await authz.outbox.settled(appended, LIMITS.deliveryWaitMs);
}
