import { v1 } from '@authzed/authzed-node';
import { fromGraphId, toGraphId } from './graph-ids.ts';
import type { Tuple, TupleFilter } from './tuple.ts';

export type GraphStoreOptions = {
  /** `host:port` of a SpiceDB, or `unix:<path>` of the embedded one. */
  endpoint: string;
  token: string;
  /** Whether the way there is encrypted; a unix socket needs none. */
  tls: boolean;
};

/** Whether a user has a permission on (or a relation to) an object. */
export type GraphCheck = { resourceType: string; resourceId: string; permission: string; userId: string };

export type GraphUpdate = { operation: 'touch' | 'delete'; tuple: Tuple };

/** Why the store did not do what it was asked. `unavailable`: it is away and may do it later; `refused`: it will not do this. */
export class GraphError extends Error {
  override readonly name = 'GraphError';
  readonly kind: 'unavailable' | 'refused';

  constructor(kind: GraphError['kind'], message: string, cause: unknown) {
    super(message, { cause });
    this.kind = kind;
  }
}

/** gRPC codes that say nothing of the request itself: cancelled, unknown, deadline, exhausted, aborted, internal, unavailable, unauthenticated. */
const PASSING = new Set([1, 2, 4, 8, 10, 13, 14, 16]);
const NOT_FOUND = 5;
/** Checks of one turn of the event loop go together, this many at most, in this many calls at a time (authorization.md). */
const BULK_MAX = 100;
const IN_FLIGHT_MAX = 2;

type Waiting = { check: GraphCheck; resolve(allowed: boolean): void; reject(error: GraphError): void };

/** The relationship graph in SpiceDB, embedded or remote: one client for both. Ids are spelled here and nowhere else. */
export class GraphStore {
  readonly #client: v1.ZedClientInterface;
  readonly #calls: v1.ZedPromiseClientInterface;
  #waiting: Waiting[] = [];
  #inFlight = 0;
  #pumpSoon = false;

  constructor(o: GraphStoreOptions) {
    const security = o.tls ? v1.ClientSecurity.SECURE : v1.ClientSecurity.INSECURE_PLAINTEXT_CREDENTIALS;
    this.#client = v1.NewClient(o.token, o.endpoint, security);
    this.#calls = this.#client.promises;
  }

  /** The schema as the store spells it, or null while it has none. @throws GraphError */
  async readSchema(): Promise<string | null> {
    try {
      return (await this.#calls.readSchema(v1.ReadSchemaRequest.create())).schemaText;
    } catch (error) {
      if (codeOf(error) === NOT_FOUND) return null;
      throw graphError(error);
    }
  }

  /** Writes the schema; the store refuses one that drops a relation which holds data. @throws GraphError */
  async writeSchema(schema: string): Promise<void> {
    await this.#ask(this.#calls.writeSchema(v1.WriteSchemaRequest.create({ schema })));
  }

  /**
   * Whether a user has a permission. Asked together with what others ask in the same turn of the event loop.
   *
   * @throws GraphError
   */
  check(check: GraphCheck): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ check, resolve, reject });
      if (this.#pumpSoon) return;
      this.#pumpSoon = true;
      setImmediate(() => {
        this.#pumpSoon = false;
        this.#pump();
      });
    });
  }

  #pump(): void {
    while (this.#waiting.length > 0 && this.#inFlight < IN_FLIGHT_MAX) {
      const batch = this.#waiting.splice(0, BULK_MAX);
      this.#inFlight++;
      void this.#checkTogether(batch).finally(() => {
        this.#inFlight--;
        this.#pump();
      });
    }
  }

  async #checkTogether(batch: readonly Waiting[]): Promise<void> {
    const items = batch.map(({ check: c }) => ({
      resource: { objectType: c.resourceType, objectId: toGraphId(c.resourceId) },
      permission: c.permission,
      subject: { object: { objectType: 'user', objectId: toGraphId(c.userId) }, optionalRelation: '' },
    }));
    try {
      const { pairs } = await this.#calls.checkBulkPermissions(v1.CheckBulkPermissionsRequest.create({ items }));
      batch.forEach(({ resolve, reject }, k) => {
        const answer = pairs[k]?.response;
        if (answer?.oneofKind === 'item')
          resolve(answer.item.permissionship === v1.CheckPermissionResponse_Permissionship.HAS_PERMISSION);
        else if (answer?.oneofKind === 'error') reject(new GraphError('refused', answer.error.message, answer.error));
        else reject(new GraphError('unavailable', 'the graph store left a check unanswered', null));
      });
    } catch (error) {
      for (const { reject } of batch) reject(graphError(error));
    }
  }

  /**
   * Writes and deletes at once, or nothing at all; each tuple once, at most 1000.
   *
   * @returns the token of the revision, for reads that must see it
   * @throws GraphError
   */
  async write(updates: readonly GraphUpdate[]): Promise<string> {
    const request = v1.WriteRelationshipsRequest.create({
      updates: updates.map(({ operation, tuple }) => ({
        operation:
          operation === 'touch' ? v1.RelationshipUpdate_Operation.TOUCH : v1.RelationshipUpdate_Operation.DELETE,
        relationship: relationshipOf(tuple),
      })),
    });
    return (await this.#ask(this.#calls.writeRelationships(request))).writtenAt?.token ?? '';
  }

  /** Every tuple that matches, as the store holds them at this moment. @throws GraphError */
  async read(filter: TupleFilter): Promise<Tuple[]> {
    const { resourceType = '', resourceId, relation = '', subjectType, subjectId } = filter;
    const request = v1.ReadRelationshipsRequest.create({
      consistency: { requirement: { oneofKind: 'fullyConsistent', fullyConsistent: true } },
      relationshipFilter: {
        resourceType,
        optionalResourceId: resourceId === undefined ? '' : toGraphId(resourceId),
        optionalResourceIdPrefix: '',
        optionalRelation: relation,
        ...(subjectType === undefined
          ? {}
          : {
              optionalSubjectFilter: {
                subjectType,
                optionalSubjectId: subjectId === undefined ? '' : toGraphId(subjectId),
              },
            }),
      },
    });
    return (await this.#ask(this.#calls.readRelationships(request))).map(r => tupleOf(r.relationship));
  }

  /** Ids of the objects of a type on which a user has a permission (service.md 4.5). @throws GraphError */
  async lookupResources(resourceType: string, permission: string, userId: string): Promise<string[]> {
    const request = v1.LookupResourcesRequest.create({
      resourceObjectType: resourceType,
      permission,
      subject: { object: { objectType: 'user', objectId: toGraphId(userId) }, optionalRelation: '' },
    });
    return (await this.#ask(this.#calls.lookupResources(request))).map(r => fromGraphId(r.resourceObjectId));
  }

  async #ask<T>(call: Promise<T>): Promise<T> {
    try {
      return await call;
    } catch (error) {
      throw graphError(error);
    }
  }

  close(): void {
    this.#client.close();
  }
}

const codeOf = (error: unknown): number | null =>
  error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : null;

function graphError(error: unknown): GraphError {
  const code = codeOf(error);
  const text = error instanceof Error ? ('details' in error ? String(error.details) : error.message) : String(error);
  return new GraphError(code === null || PASSING.has(code) ? 'unavailable' : 'refused', text, error);
}

const relationshipOf = (t: Tuple): v1.Relationship => ({
  resource: { objectType: t.resourceType, objectId: toGraphId(t.resourceId) },
  relation: t.relation,
  subject: {
    object: { objectType: t.subjectType, objectId: toGraphId(t.subjectId) },
    optionalRelation: t.subjectRelation,
  },
});

function tupleOf(r: v1.Relationship | undefined): Tuple {
  return {
    resourceType: r?.resource?.objectType ?? '',
    resourceId: fromGraphId(r?.resource?.objectId ?? ''),
    relation: r?.relation ?? '',
    subjectType: r?.subject?.object?.objectType ?? '',
    subjectId: fromGraphId(r?.subject?.object?.objectId ?? ''),
    subjectRelation: r?.subject?.optionalRelation ?? '',
  };
}
