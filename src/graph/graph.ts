import { randomUUID } from 'node:crypto';
import { type BoundedCache, boundedCache } from '../bounded-cache.ts';
import { LIMITS } from '../limits.ts';
import { type CheckStep, type Freshness, type GraphCheck, GraphError, type GraphStore } from './graph-store.ts';
import type { Tuple } from './tuple.ts';

/** Checks of one turn of the event loop go together, this many at most, in this many calls at a time (authorization.md). */
const BULK_MAX = 100;
const IN_FLIGHT_MAX = 2;
/** So long after a write answers are at least as fresh as it (authorization.md "Graph"). */
const FRESH_MS = 10_000;

/** Marks a store carries, beside the graph: `loaded` when it has everything, which is asked beside every answer, because a
 * store that is being filled says "no" to all; `filling` while somebody fills it. */
const markFilter = (id: 'loaded' | 'filling') => ({ resourceType: 'outbox_fence', resourceId: id, relation: 'epoch' });

/** A new mark each time, so that two fillings are told apart. */
export function newMark(id: 'loaded' | 'filling'): Tuple {
  return { ...markFilter(id), subjectType: 'outbox_epoch', subjectId: randomUUID(), subjectRelation: '' };
}

/** @throws GraphError */
export const readMarks = (store: Pick<GraphStore, 'read'>, id: 'loaded' | 'filling'): Promise<Tuple[]> =>
  store.read(markFilter(id));

const isRefusal = (error: unknown): error is GraphError => error instanceof GraphError && error.kind === 'refused';

/** None, too, when the store has no schema yet. */
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

/** A check as people write it: `study_group:g1#view_all@user:e1`. */
export const checkText = (c: GraphCheck): string =>
  `${c.resourceType}:${c.resourceId}#${c.permission}@${c.subjectType}:${c.subjectId}`;

/** One question and everybody who waits for its answer. */
type Waiting = {
  check: GraphCheck;
  answers: Array<{ resolve(allowed: boolean): void; reject(error: GraphError): void }>;
};

/**
 * What the service asks the graph. Answers come from a store that has everything, and for ten seconds after a change from a
 * revision that has the change; while there is no such store every question is refused as `unavailable`, never answered "no".
 */
export class Graph {
  #store: GraphStore | null = null;
  readonly #now: () => number;
  #mark: Tuple | null = null;
  #token = '';
  #freshUntil = 0;
  /** Answers until something changes, a second at most: one page of a frontend asks the same many times. */
  readonly #answers: BoundedCache<string, { allowed: boolean }>;
  /** Grows with every change: what was asked before it is not remembered. */
  #changes = 0;
  /** By question: what several ask in one turn is asked once. */
  #waiting = new Map<string, Waiting>();
  #inFlight = 0;
  #pumpSoon = false;

  constructor(now: () => number) {
    this.#now = now;
    this.#answers = boundedCache({ max: LIMITS.graphAnswersMax, ttlMs: LIMITS.graphAnswerMs, now });
  }

  /** @throws GraphError `unavailable` when there is none */
  get store(): GraphStore {
    if (this.#store === null) throw new GraphError('unavailable', 'the graph store is not up yet', null);
    return this.#store;
  }

  /** From now on another store is asked, one that was filled. */
  useStore(store: GraphStore): void {
    this.#store = store;
    this.#mark = null;
    this.#freshUntil = 0;
    this.forget();
  }

  /** A write reached the store. */
  delivered(token: string): void {
    this.#token = token;
    this.#freshUntil = this.#now() + FRESH_MS;
    this.forget();
  }

  /** Something may have changed. */
  forget(): void {
    this.#changes++;
    this.#answers.clear();
  }

  /** The answer to a check, when it was given a moment ago and nothing has changed since. */
  peek(check: GraphCheck): boolean | undefined {
    return this.#answers.get(checkText(check))?.allowed;
  }

  /**
   * Whether a user has a permission. Asked together with what others ask in the same turn of the event loop.
   *
   * @throws GraphError
   */
  check(check: GraphCheck): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const key = checkText(check);
      const waiting = this.#waiting.get(key);
      if (waiting !== undefined) waiting.answers.push({ resolve, reject });
      else this.#waiting.set(key, { check, answers: [{ resolve, reject }] });
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
      for (const [key, waiting] of this.#waiting) {
        this.#waiting.delete(key);
        if (batch.push(waiting) === BULK_MAX) break;
      }
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
      const answers = await this.#checkLoaded(batch.map(w => w.check));
      batch.forEach((waiting, k) => {
        const answer = answers[k];
        if (typeof answer === 'boolean' && changes === this.#changes)
          this.#answers.set(checkText(waiting.check), { allowed: answer });
        for (const { reject, resolve } of waiting.answers)
          if (typeof answer === 'boolean') resolve(answer);
          else reject(answer ?? new GraphError('unavailable', 'the graph store left a check unanswered', null));
      });
    } catch (error) {
      const why = error instanceof GraphError ? error : new GraphError('unavailable', String(error), error);
      for (const { answers } of batch) for (const { reject } of answers) reject(why);
    }
  }

  /** The mark is asked in the same call, so of the same revision. */
  #checkLoaded(checks: readonly GraphCheck[]): Promise<Array<boolean | GraphError>> {
    return this.#ofLoaded(async (store, mark) => {
      const answers = await this.#fresh(freshness => store.checkBulk([...checks, isLoaded(mark)], freshness));
      return answers.pop() === true ? answers : null;
    });
  }

  /**
   * Asks a store that has everything.
   *
   * @param question null when the mark is not there any more: another store, perhaps one that is being filled
   */
  async #ofLoaded<T>(question: (store: GraphStore, mark: Tuple) => Promise<T | null>): Promise<T> {
    const { store } = this;
    for (let again = false; ; again = true) {
      const mark = await this.#loadedMark(store);
      try {
        const answer = await question(store, mark);
        if (answer !== null) return answer;
      } catch (error) {
        // A store without a schema refuses everything, which says nothing of the question.
        if (!isRefusal(error) || (await this.#hasMark(store, mark))) throw error;
      }
      this.#mark = null;
      this.#freshUntil = 0;
      if (again) throw notLoaded();
    }
  }

  async #loadedMark(store: GraphStore): Promise<Tuple> {
    if (this.#mark !== null) return this.#mark;
    const mark = (await marksOf(store))[0];
    if (mark === undefined) throw notLoaded();
    if (store === this.#store) this.#mark = mark;
    return mark;
  }

  async #hasMark(store: GraphStore, mark: Tuple): Promise<boolean> {
    return (await marksOf(store)).some(m => m.subjectId === mark.subjectId);
  }

  /** With a token as long as a change is new; a token of a store that is gone is refused, and then the latest is asked. */
  async #fresh<T>(question: (freshness: Freshness) => Promise<T>): Promise<T> {
    if (this.#now() >= this.#freshUntil || this.#token === '') return await question('fast');
    try {
      return await question({ token: this.#token });
    } catch (error) {
      if (!isRefusal(error)) throw error;
      this.#freshUntil = 0;
      return await question('latest');
    }
  }

  /** An answer that cannot be asked together with the mark counts when the store has the mark known before, afterwards. */
  #lookup<T>(question: (store: GraphStore, freshness: Freshness) => Promise<T>): Promise<T> {
    return this.#ofLoaded(async (store, mark) => {
      const answer = await this.#fresh(freshness => question(store, freshness));
      const [still] = await store.checkBulk([isLoaded(mark)], 'latest');
      return still === true ? answer : null;
    });
  }

  /** Ids of the objects of a type on which a user has a permission (service.md 4.5). @throws GraphError */
  lookupResources(type: string, permission: string, userId: string): Promise<string[]> {
    return this.#lookup((store, freshness) => store.lookupResources(type, permission, userId, freshness));
  }

  /** Ids of the users who have a permission on an object. @throws GraphError */
  lookupUsers(type: string, id: string, permission: string): Promise<string[]> {
    return this.#lookup((store, freshness) => store.lookupUsers(type, id, permission, freshness));
  }

  /** The schema as the store has it, or null. @throws GraphError */
  readSchema(): Promise<string | null> {
    return this.store.readSchema();
  }

  /** One check with the way the store went. @throws GraphError */
  checkWithSteps(check: GraphCheck): Promise<CheckStep> {
    return this.#lookup(store => store.checkWithSteps(check));
  }

  close(): void {
    this.#store?.close();
  }
}

const notLoaded = (): GraphError =>
  new GraphError('unavailable', 'the graph store is being filled; it answers in a moment', null);
