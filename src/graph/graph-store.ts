import { deadlineInterceptor, v1 } from '@authzed/authzed-node';
import { messageOf } from '../base/errors.ts';
import { codeOf, GraphConnection } from './graph-connection.ts';
import { fromGraphId, toGraphId } from './graph-ids.ts';
import type { Tuple, TupleFilter } from './tuple.ts';

export type GraphStoreOptions = {
  /** `host:port` of a SpiceDB, or `unix:<path>` of the embedded one. */
  endpoint: string;
  token: string;
  /** Whether to use TLS; a unix socket does not need it. */
  tls: boolean;
  /** PEM of the certificate authority of the store; without it, the authorities Node trusts. */
  ca?: Buffer | null;
  /** Whether it is the embedded store, which only the outbox writes. */
  isOurs?: boolean;
};

/** Whether a subject has a permission on (or a relation to) an object. */
export type GraphCheck = {
  resourceType: string;
  resourceId: string;
  permission: string;
  subjectType: string;
  subjectId: string;
};

export type GraphUpdate = { operation: 'touch' | 'delete'; tuple: Tuple };

/** A precondition of a write. */
export type WriteCondition = { exists: boolean; filter: TupleFilter };

/** How fresh an answer must be: of the last write, at least of a token, exactly of a token, or whatever is fastest. */
export type Freshness = 'latest' | 'fast' | { token: string } | { exactly: string };

/** One step of the store's explanation why a permission was granted or refused. */
export type CheckStep = { object: string; permission: string; subject: string; allowed: boolean; steps: CheckStep[] };

/** Why a call to the store failed. `unavailable`: it may succeed later; `refused`: it will not succeed. */
export class GraphError extends Error {
  override readonly name = 'GraphError';
  readonly kind: 'unavailable' | 'refused';

  constructor(kind: GraphError['kind'], message: string, cause: unknown) {
    super(message, { cause });
    this.kind = kind;
  }
}

/**
 * gRPC codes not caused by the request: cancelled, unknown, deadline, exhausted, aborted, internal, unavailable,
 * unauthenticated.
 */
const PASSING = new Set([1, 2, 4, 8, 10, 13, 14, 16]);
const NOT_FOUND = 5;
/** Time limit of a check, and of other calls. */
const ASK_MS = 3000;
const WORK_MS = 10_000;
/** Relationships read in one call. */
const PAGE = 1000;

/** The client of the relationship graph in SpiceDB, embedded or remote. Ids are encoded only here. */
export class GraphStore {
  readonly #questions: GraphConnection<v1.ZedPromiseClientInterface>;
  readonly #work: GraphConnection<v1.ZedPromiseClientInterface>;
  /** Whether only the outbox writes it. */
  readonly isOurs: boolean;

  constructor(o: GraphStoreOptions) {
    this.isOurs = o.isOurs === true;
    const security = o.tls ? v1.ClientSecurity.SECURE : v1.ClientSecurity.INSECURE_PLAINTEXT_CREDENTIALS;
    const open = (ms: number) => (): v1.ZedClientInterface => {
      const options = {
        // An embedded store that was killed restarts in less than a second, so the client must reconnect as fast.
        'grpc.initial_reconnect_backoff_ms': 100,
        'grpc.max_reconnect_backoff_ms': 1000,
        'grpc.max_receive_message_length': -1,
        // A connection that takes the place of a silent one is a new one.
        'grpc.use_local_subchannel_pool': 1,
        interceptors: [deadlineInterceptor(ms)],
      };
      return o.tls && o.ca != null
        ? v1.NewClientWithCustomCert(o.token, o.endpoint, o.ca, undefined, options)
        : v1.NewClient(o.token, o.endpoint, security, undefined, options);
    };
    this.#questions = new GraphConnection(open(ASK_MS));
    this.#work = new GraphConnection(open(WORK_MS), () =>
      this.#questions.ask(c => c.readSchema(v1.ReadSchemaRequest.create())),
    );
  }

  /** The schema as the store formats it, or null while it has none. @throws GraphError */
  async readSchema(): Promise<string | null> {
    try {
      return (await this.#work.ask(c => c.readSchema(v1.ReadSchemaRequest.create()))).schemaText;
    } catch (error) {
      if (codeOf(error) === NOT_FOUND) return null;
      throw graphError(error);
    }
  }

  /** Writes the schema. The store refuses a schema without a relation that still has tuples. @throws GraphError */
  async writeSchema(schema: string): Promise<void> {
    await ask(this.#work, client => client.writeSchema(v1.WriteSchemaRequest.create({ schema })));
  }

  /**
   * Makes many checks in one call, all at the same revision.
   *
   * @returns for each check whether it holds, or why it failed
   * @throws GraphError when the whole call failed
   */
  async checkBulk(checks: readonly GraphCheck[], freshness: Freshness): Promise<Array<boolean | GraphError>> {
    const items = checks.map(c => ({
      resource: { objectType: c.resourceType, objectId: toGraphId(c.resourceId) },
      permission: c.permission,
      subject: subjectOf(c.subjectType, c.subjectId),
    }));
    const request = v1.CheckBulkPermissionsRequest.create({ items, consistency: consistencyOf(freshness) });
    const { pairs } = await ask(this.#questions, client => client.checkBulkPermissions(request));
    return checks.map((_, k) => {
      const answer = pairs[k]?.response;
      if (answer?.oneofKind === 'item')
        return answer.item.permissionship === v1.CheckPermissionResponse_Permissionship.HAS_PERMISSION;
      if (answer?.oneofKind === 'error') {
        const { code, message } = answer.error;
        return new GraphError(PASSING.has(code) ? 'unavailable' : 'refused', message, answer.error);
      }
      return new GraphError('unavailable', 'the graph store left a check unanswered', null);
    });
  }

  /** One check with the store's explanation. @throws GraphError */
  async checkWithSteps(c: GraphCheck): Promise<CheckStep> {
    const request = v1.CheckPermissionRequest.create({
      consistency: consistencyOf('latest'),
      resource: { objectType: c.resourceType, objectId: toGraphId(c.resourceId) },
      permission: c.permission,
      subject: subjectOf(c.subjectType, c.subjectId),
      withTracing: true,
    });
    const answer = await ask(this.#questions, client => client.checkPermission(request));
    const trace = answer.debugTrace?.check;
    if (trace !== undefined) return stepOf(trace);
    const allowed = answer.permissionship === v1.CheckPermissionResponse_Permissionship.HAS_PERMISSION;
    const [object, subject] = [`${c.resourceType}:${c.resourceId}`, `${c.subjectType}:${c.subjectId}`];
    return { object, permission: c.permission, subject, allowed, steps: [] };
  }

  /**
   * Writes and deletes tuples in one transaction; each tuple once, at most 1000.
   *
   * @param conditions all must hold, otherwise the store refuses the write
   * @returns the token of the revision, for reads that must see the write
   * @throws GraphError
   */
  async write(updates: readonly GraphUpdate[], conditions: readonly WriteCondition[] = []): Promise<string> {
    const request = v1.WriteRelationshipsRequest.create({
      updates: updates.map(({ operation, tuple }) => ({
        operation:
          operation === 'touch' ? v1.RelationshipUpdate_Operation.TOUCH : v1.RelationshipUpdate_Operation.DELETE,
        relationship: relationshipOf(tuple),
      })),
      optionalPreconditions: conditions.map(c => ({
        operation: c.exists ? v1.Precondition_Operation.MUST_MATCH : v1.Precondition_Operation.MUST_NOT_MATCH,
        filter: filterOf(c.filter),
      })),
    });
    const answer = await ask(this.#work, client => client.writeRelationships(request));
    return answer.writtenAt?.token ?? '';
  }

  /** The token of the newest revision, read with a tuple that matches; empty when none matches. @throws GraphError */
  async revision(filter: TupleFilter): Promise<string> {
    const request = v1.ReadRelationshipsRequest.create({
      consistency: consistencyOf('latest'),
      relationshipFilter: filterOf(filter),
      optionalLimit: 1,
    });
    const rows = await ask(this.#work, client => client.readRelationships(request));
    return rows[0]?.readAt?.token ?? '';
  }

  /** All matching tuples in pages, as of now or of one revision. @throws GraphError */
  async *pages(filter: TupleFilter, freshness: Freshness = 'latest'): AsyncGenerator<Tuple[]> {
    let cursor: v1.Cursor | undefined;
    for (;;) {
      const request = v1.ReadRelationshipsRequest.create({
        consistency: consistencyOf(freshness),
        relationshipFilter: filterOf(filter),
        optionalLimit: PAGE,
        ...(cursor === undefined ? {} : { optionalCursor: cursor }),
      });
      const rows = await ask(this.#work, client => client.readRelationships(request));
      if (rows.length > 0) yield rows.map(r => tupleOf(r.relationship));
      cursor = rows.at(-1)?.afterResultCursor;
      if (rows.length < PAGE || cursor === undefined) return;
    }
  }

  /** All matching tuples as one list. @throws GraphError */
  async read(filter: TupleFilter): Promise<Tuple[]> {
    const all: Tuple[] = [];
    for await (const page of this.pages(filter)) all.push(...page);
    return all;
  }

  /**
   * Ids of the objects of a type on which a user has a permission (docs/authorization.md "Relationship graph"). @throws
   * GraphError
   */
  async lookupResources(type: string, permission: string, userId: string, freshness: Freshness): Promise<string[]> {
    const request = v1.LookupResourcesRequest.create({
      consistency: consistencyOf(freshness),
      resourceObjectType: type,
      permission,
      subject: subjectOf('user', userId),
    });
    const rows = await ask(this.#questions, client => client.lookupResources(request));
    return rows.map(r => fromGraphId(r.resourceObjectId));
  }

  /** Ids of the users who have a permission on an object. @throws GraphError */
  async lookupUsers(type: string, id: string, permission: string, freshness: Freshness): Promise<string[]> {
    const request = v1.LookupSubjectsRequest.create({
      consistency: consistencyOf(freshness),
      resource: { objectType: type, objectId: toGraphId(id) },
      permission,
      subjectObjectType: 'user',
    });
    // Of a hundred thousand it takes the store seconds to list them.
    const rows = await ask(this.#work, client => client.lookupSubjects(request));
    return rows.map(r => fromGraphId(r.subject?.subjectObjectId ?? ''));
  }

  /** May be called more than once. */
  close(): void {
    this.#questions.close();
    this.#work.close();
  }
}

async function ask<T>(
  connection: GraphConnection<v1.ZedPromiseClientInterface>,
  call: (client: v1.ZedPromiseClientInterface) => Promise<T>,
): Promise<T> {
  try {
    return await connection.ask(call);
  } catch (error) {
    throw graphError(error);
  }
}

function graphError(error: unknown): GraphError {
  const code = codeOf(error);
  const details = error instanceof Error && 'details' in error ? String(error.details) : messageOf(error);
  // The library closes with a note that is mostly empty.
  const text = details.replace(/ ?Resolution note: ?$/, '');
  return new GraphError(code === null || PASSING.has(code) ? 'unavailable' : 'refused', text, error);
}

function consistencyOf(freshness: Freshness): v1.Consistency {
  if (freshness === 'latest') return { requirement: { oneofKind: 'fullyConsistent', fullyConsistent: true } };
  if (freshness === 'fast') return { requirement: { oneofKind: 'minimizeLatency', minimizeLatency: true } };
  if ('exactly' in freshness)
    return { requirement: { oneofKind: 'atExactSnapshot', atExactSnapshot: { token: freshness.exactly } } };
  return { requirement: { oneofKind: 'atLeastAsFresh', atLeastAsFresh: { token: freshness.token } } };
}

const subjectOf = (objectType: string, id: string): v1.SubjectReference => ({
  object: { objectType, objectId: toGraphId(id) },
  optionalRelation: '',
});

function filterOf(f: TupleFilter): v1.RelationshipFilter {
  const { resourceType = '', resourceId, relation = '', subjectType, subjectId } = f;
  return {
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
  };
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

type Trace = NonNullable<NonNullable<v1.CheckPermissionResponse['debugTrace']>['check']>;
/** `CheckDebugTrace.Permissionship` of the API, a type that the client does not export. */
const HAS_PERMISSION = 2;

function stepOf(trace: Trace): CheckStep {
  const { resource, resolution } = trace;
  const subject = trace.subject?.object;
  return {
    object: `${resource?.objectType ?? ''}:${fromGraphId(resource?.objectId ?? '')}`,
    permission: trace.permission,
    subject: `${subject?.objectType ?? ''}:${fromGraphId(subject?.objectId ?? '')}`,
    allowed: Number(trace.result) === HAS_PERMISSION,
    steps: resolution.oneofKind === 'subProblems' ? resolution.subProblems.traces.map(stepOf) : [],
  };
}
