import { randomUUID } from 'node:crypto';
import { type BoundedCache, boundedCache } from '../base/bounded-cache.ts';
import { LIMITS } from '../base/limits.ts';
import { Durations } from '../base/metric.ts';
import { idProblem } from './graph-schema.ts';
import { type CheckStep, type Freshness, type GraphCheck, GraphError, type GraphStore } from './graph-store.ts';
import type { Tuple } from './tuple.ts';

/**
 * Checks of one event-loop turn are sent together: this many in one call, in this many calls at a time
 * (docs/authorization.md "Checks go together").
 */
const BULK_MAX = 100;
const IN_FLIGHT_MAX = 2;
/** For this time after a write, answers are at least as fresh as the write (docs/authorization.md "Freshness"). */
const FRESH_MS = 10_000;

type MarkId = 'loaded' | 'filling' | 'probe';

/**
 * Tuples that mark the state of a store: `loaded` when it has the whole graph, `filling` while a deliverer fills it.
 * Every call also checks `loaded`, because a store that is being filled answers "no" to every check.
 */
const markFilter = (id: MarkId) => ({ resourceType: 'outbox_fence', resourceId: id, relation: 'epoch' });

/** A new mark each time, so that two fillings can be distinguished. */
export function newMark(id: MarkId): Tuple {
  return { ...markFilter(id), subjectType: 'outbox_epoch', subjectId: randomUUID(), subjectRelation: '' };
}

/** @throws GraphError */
export const readMarks = (store: Pick<GraphStore, 'read'>, id: MarkId): Promise<Tuple[]> => store.read(markFilter(id));

const isRefusal = (error: unknown): error is GraphError => error instanceof GraphError && error.kind === 'refused';

/** Reads marks; none when the store has no schema yet. */
const marksOf = (store: GraphStore): Promise<Tuple[]> =>
  readMarks(store, 'loaded').catch((error: unknown) => {
    if (isRefusal(error)) return [];
    throw error;
  });

const isLoaded = (mark: Tuple): GraphCheck => ({
  resourceType: mark.resourceType,
  resourceId: mark.resourceId,
  permission: mark.relation,
  subjectType: mark.subjectType,
  subjectId: mark.subjectId,
});

/** A check in the usual notation: `study_group:g1#view_all@user:e1`. */
export const checkText = (c: GraphCheck): string =>
  `${c.resourceType}:${c.resourceId}#${c.permission}@${c.subjectType}:${c.subjectId}`;

/** A unique key of a check, whatever characters its ids contain. */
export const checkKey = (c: GraphCheck): string =>
  [c.resourceType, c.resourceId, c.permission, c.subjectType, c.subjectId].join('\0');

const NAME = /^[a-z][a-z0-9_]{1,62}[a-z0-9]$/;

/** Refuses a malformed check here, because the store would refuse all checks in the same call. @throws GraphError */
export function assertAskable(c: GraphCheck): void {
  for (const [what, name] of [
    ['object type', c.resourceType],
    ['permission', c.permission],
    ['subject type', c.subjectType],
  ] as const)
    if (!NAME.test(name)) throw new GraphError('refused', `there is no ${what} "${name.slice(0, 100)}"`, null);
  for (const id of [c.resourceId, c.subjectId]) {
    const problem = idProblem(id);
    if (problem !== null) throw new GraphError('refused', `the id "${id.slice(0, 100)}" ${problem.message}`, null);
  }
}

/** One check and the callers that wait for its answer. */
type Waiting = {
  key: string;
  check: GraphCheck;
  since: number;
  answers: Array<{ resolve(allowed: boolean): void; reject(error: GraphError): void }>;
};

/**
 * The graph as the service queries it. Answers come only from a store with the whole graph, and for ten seconds after a
 * change from a revision with that change. Without such a store every query fails as `unavailable`; it is never
 * answered "no".
 */
export class Graph {
  #store: GraphStore | null = null;
  readonly #now: () => number;
  readonly #onNotLoaded: () => void;
  #mark: Tuple | null = null;
  #token = '';
  #freshUntil = 0;
  /** Cached answers, for a second or until a change: one page of a frontend makes the same check many times. */
  readonly #answers: BoundedCache<string, { allowed: boolean }>;
  /** Grows with every change; answers to checks made before the change are not cached. */
  #changes = 0;
  /** Waiting checks by key, so that equal checks of one turn are sent once. */
  #waiting = new Map<string, Waiting>();
  #inFlight = 0;
  /** How long the store took for a call, since the process started; those that failed count apart. */
  readonly durations = { check: new Durations(), lookup: new Durations() };
  failures = 0;
  #pumpSoon = false;

  /** @param onNotLoaded called when the store turns out not to have the whole graph */
  constructor(now: () => number, onNotLoaded: () => void = () => {}) {
    this.#now = now;
    this.#onNotLoaded = onNotLoaded;
    this.#answers = boundedCache({ max: LIMITS.graphAnswersMax, ttlMs: LIMITS.graphAnswerMs, now });
  }

  /** @throws GraphError `unavailable` when there is none */
  get store(): GraphStore {
    if (this.#store === null) throw new GraphError('unavailable', 'the graph store is not ready yet', null);
    return this.#store;
  }

  /** Uses another store from now on, which was filled. */
  useStore(store: GraphStore): void {
    this.#store = store;
    this.#mark = null;
    this.mayHaveChanged();
  }

  /** Uses no store from now on. */
  leaveStore(): void {
    this.#store = null;
    this.#mark = null;
    this.forget();
  }

  /** Notes that a write reached the store. */
  delivered(token: string): void {
    this.#token = token;
    this.#freshUntil = this.#now() + FRESH_MS;
    this.forget();
  }

  /** Notes that a write may have reached the store unannounced: for ten seconds, reads ask for the latest revision. */
  mayHaveChanged(): void {
    this.#token = '';
    this.#freshUntil = this.#now() + FRESH_MS;
    this.forget();
  }

  /** Clears the cached answers. */
  forget(): void {
    this.#changes++;
    this.#answers.clear();
  }

  /** The cached answer to a check, if nothing has changed since. */
  peek(check: GraphCheck): boolean | undefined {
    return this.#answers.get(checkKey(check))?.allowed;
  }

  /**
   * Whether a user has a permission. Sent together with the other checks of the same event-loop turn.
   *
   * @throws GraphError
   */
  check(check: GraphCheck): Promise<boolean> {
    return new Promise((resolve, reject) => {
      assertAskable(check);
      const key = checkKey(check);
      const waiting = this.#waiting.get(key);
      if (waiting !== undefined) waiting.answers.push({ resolve, reject });
      else if (this.#waiting.size >= LIMITS.graphWaitingMax) throw tooSlow();
      else this.#waiting.set(key, { key, check, since: performance.now(), answers: [{ resolve, reject }] });
      if (this.#pumpSoon) return;
      this.#pumpSoon = true;
      setImmediate(() => {
        this.#pumpSoon = false;
        this.#pump();
      });
    });
  }

  #pump(): void {
    while (this.#waiting.size > 0 && this.#inFlight < IN_FLIGHT_MAX) {
      const batch: Waiting[] = [];
      const tooOld = performance.now() - LIMITS.graphWaitMs;
      for (const [key, waiting] of this.#waiting) {
        this.#waiting.delete(key);
        if (waiting.since < tooOld) for (const { reject } of waiting.answers) reject(tooSlow());
        else if (batch.push(waiting) === BULK_MAX) break;
      }
      if (batch.length === 0) return;
      this.#inFlight++;
      void this.#checkTogether(batch).finally(() => {
        this.#inFlight--;
        this.#pump();
      });
    }
  }

  async #checkTogether(batch: readonly Waiting[]): Promise<void> {
    const changes = this.#changes;
    try {
      const answers = await this.#checkEach(batch.map(w => w.check));
      batch.forEach((waiting, k) => {
        const answer = answers[k];
        if (typeof answer === 'boolean' && changes === this.#changes)
          this.#answers.set(waiting.key, { allowed: answer });
        for (const { reject, resolve } of waiting.answers)
          if (typeof answer === 'boolean') resolve(answer);
          else reject(answer ?? new GraphError('unavailable', 'the graph store left a check unanswered', null));
      });
    } catch (error) {
      const why = error instanceof GraphError ? error : new GraphError('unavailable', String(error), error);
      for (const { answers } of batch) for (const { reject } of answers) reject(why);
    }
  }

  /** Repeats the checks of a refused call one by one, because one of them caused the refusal. */
  async #checkEach(checks: readonly GraphCheck[]): Promise<Array<boolean | GraphError>> {
    try {
      return await this.#checkLoaded(checks);
    } catch (error) {
      if (!isRefusal(error) || checks.length === 1) throw error;
    }
    const answers: Array<boolean | GraphError> = [];
    for (const check of checks)
      try {
        answers.push(...(await this.#checkLoaded([check])));
      } catch (error) {
        // The store is unavailable: the remaining checks fail the same way.
        if (!isRefusal(error)) throw error;
        answers.push(error);
      }
    return answers;
  }

  /** Checks the mark in the same call, and so at the same revision. */
  #checkLoaded(checks: readonly GraphCheck[]): Promise<Array<boolean | GraphError>> {
    return this.#ofLoaded('check', async (store, mark) => {
      const answers = await this.#fresh(freshness => store.checkBulk([...checks, isLoaded(mark)], freshness));
      return answers.pop() === true ? answers : null;
    });
  }

  /**
   * Queries a store that has the whole graph.
   *
   * @param question returns null when the mark is missing: it is another store, perhaps one that is being filled
   */
  async #ofLoaded<T>(
    kind: 'check' | 'lookup',
    question: (store: GraphStore, mark: Tuple) => Promise<T | null>,
  ): Promise<T> {
    const since = performance.now();
    try {
      const answer = await this.#askLoaded(question);
      this.durations[kind].add(performance.now() - since);
      return answer;
    } catch (error) {
      this.failures++;
      throw error;
    }
  }

  async #askLoaded<T>(question: (store: GraphStore, mark: Tuple) => Promise<T | null>): Promise<T> {
    const { store } = this;
    for (let again = false; ; again = true) {
      const mark = await this.#loadedMark(store);
      try {
        const answer = await question(store, mark);
        if (answer !== null) return answer;
      } catch (error) {
        // A store without a schema refuses every query, so the refusal does not mean the query is wrong.
        if (!isRefusal(error) || (await this.#hasMark(store, mark))) throw error;
      }
      this.#mark = null;
      this.#token = '';
      this.#freshUntil = this.#now() + FRESH_MS;
      if (again) throw this.#notLoaded();
    }
  }

  /** Calls `onNotLoaded`, so that the deliverer fills the store. */
  #notLoaded(): GraphError {
    this.#onNotLoaded();
    return new GraphError('unavailable', 'the graph store is being filled; try again in a moment', null);
  }

  async #loadedMark(store: GraphStore): Promise<Tuple> {
    if (this.#mark !== null) return this.#mark;
    const mark = (await marksOf(store))[0];
    if (mark === undefined) throw this.#notLoaded();
    if (store === this.#store) this.#mark = mark;
    return mark;
  }

  async #hasMark(store: GraphStore, mark: Tuple): Promise<boolean> {
    return (await marksOf(store)).some(m => m.subjectId === mark.subjectId);
  }

  /**
   * Queries with a token while a change is new. A store refuses the token of another store; then asks for the latest
   * revision.
   */
  async #fresh<T>(question: (freshness: Freshness) => Promise<T>): Promise<T> {
    if (this.#now() >= this.#freshUntil) return await question('fast');
    if (this.#token === '') return await question('latest');
    try {
      return await question({ token: this.#token });
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // The store refused either the token or the query. If the query succeeds without the token, it was the token.
      const answer = await question('latest');
      this.#token = '';
      return answer;
    }
  }

  /**
   * A query that cannot check the mark in the same call: its answer counts if the store still has the same mark
   * afterwards.
   */
  #lookup<T>(question: (store: GraphStore, freshness: Freshness) => Promise<T>): Promise<T> {
    return this.#ofLoaded('lookup', async (store, mark) => {
      const answer = await this.#fresh(freshness => question(store, freshness));
      const [still] = await store.checkBulk([isLoaded(mark)], 'latest');
      return still === true ? answer : null;
    });
  }

  /**
   * Ids of the objects of a type on which a user has a permission (docs/authorization.md "Relationship graph"). @throws
   * GraphError
   */
  lookupResources(type: string, permission: string, userId: string): Promise<string[]> {
    return this.#lookup((store, freshness) => store.lookupResources(type, permission, userId, freshness));
  }

  /** Ids of the users who have a permission on an object. @throws GraphError */
  lookupUsers(type: string, id: string, permission: string): Promise<string[]> {
    return this.#lookup((store, freshness) => store.lookupUsers(type, id, permission, freshness));
  }

  /** Asks whether the store has the whole graph. @throws GraphError when it does not, or does not answer */
  async ping(): Promise<void> {
    await this.#checkLoaded([]);
  }

  /** The schema of the store, or null. @throws GraphError */
  async readSchema(): Promise<string | null> {
    return await this.store.readSchema();
  }

  /** One check with the store's explanation. @throws GraphError */
  checkWithSteps(check: GraphCheck): Promise<CheckStep> {
    return this.#lookup(store => store.checkWithSteps(check));
  }

  close(): void {
    this.#store?.close();
  }
}

const tooSlow = (): GraphError =>
  new GraphError('unavailable', 'too many checks wait for the graph store, or it answers too slowly', null);
