import t from 'tap';
import type { Actor } from '../../src/audit/audit-log.ts';
import { Policies } from '../../src/authz/policies.ts';
import { compileForSaving } from '../../src/authz/policy.ts';
import { PolicyError } from '../../src/authz/policy-ast.ts';
import { SubjectContexts } from '../../src/authz/subject-context.ts';
import { openDatabase, type Queryable } from '../../src/db/database.ts';
import { Graph, readMarks } from '../../src/graph/graph.ts';
import { readGraphSchema } from '../../src/graph/graph-schema.ts';
import { GraphError } from '../../src/graph/graph-store.ts';
import { grantUserRole } from '../../src/identity/user-roles.ts';
import { addUser } from '../../src/identity/users.ts';
import { Deliverer } from '../../src/outbox/deliver.ts';
import { makeDatabase } from '../support/database.ts';
import { startGraphStore, tuple } from '../support/graph.ts';
import { until } from '../support/until.ts';

const schema = readGraphSchema();

const refusal = (source: string): PolicyError | null => {
  try {
    compileForSaving(source, schema);
    return null;
  } catch (error) {
    if (error instanceof PolicyError) return error;
    throw error;
  }
};

t.test('an invalid policy is refused when it is saved, with the position of the mistake', async t => {
  const rows: Array<[source: string, place: string, message: RegExp]> = [
    ['user.locle == "ru"', 'locle', /locle/],
    ['user.locale == "ru" &&', '', /ends here too early/],
    ['user.locale ==', '', /ends here too early/],
    ['has_role("x"', '', /ends here too early/],
    ['user.locale == )', ')', /Unexpected token/],
    ['user.id', 'user.id', /must be true or false; this is int/],
    ['dyn(true)', 'dyn(true)', /dyn is not supported/],
    ['user.groups', 'user.groups', /this is list<string>/],
    ['person.locale == "ru"', 'person', /Unknown variable: person/],
    ['has_rule("x")', 'has_rule("x")', /has_rule/],
    ['has_role(1)', 'has_role(1)', /has_role/],
    ['check("view_all", "faculty")', 'check("view_all", "faculty")', /check/],
    ['__proto__ == 1', '__proto__', /Reserved/],
    ['user.__proto__ == ""', '__proto__', /No such key/],
    ['user.constructor == ""', 'constructor', /No such key/],
    ['user["__proto__"] == ""', 'user["__proto__"]', /No such key/],
    ['constructor.constructor("return 1")()', '', /./],
    ['"aaaa".matches("(a+)+$")', '"aaaa".matches("(a+)+$")', /re_match/],
    ['re_match(user.locale, user.external_id)', 'user.external_id', /a literal text/],
    ['cel.bind(x, "a" + "a", x == "b")', 'cel.bind(x, "a" + "a", x == "b")', /bind is not supported/],
    ['"a,b".split(",").size() == 2', '"a,b".split(",")', /split is not supported/],
    ['timestamp("2020-01-01T00:00:00Z").getHours("Europe/Moscow") == 1', '', /not supported/],
    ['user.groups.all(g, user.groups + user.groups != [""])', 'user.groups + user.groups', /\+ is not allowed inside/],
    ['re_match(user.locale, "(a{10}){10}")', '"(a{10}){10}"', /one counted repetition/],
    ['(user.groups + user.groups).all(g, g == "x")', 'user.groups + user.groups', /cannot be joined/],
    [
      'user.groups.filter(g, check("admin", "faculty", g)).size() == 1',
      'check("admin", "faculty", g)',
      /use exists or all/,
    ],
    ['user.groups.map(g, is_member("study_group", g)).size() == 1', 'is_member("study_group", g)', /use exists or all/],
    ['user.groups.all(a, user.groups.all(b, re_match(a, "x")))', 're_match(a, "x")', /not inside nested ones/],
    ['re_match(user.locale, "(")', '"("', /regexp/],
    ['re_match(user.locale, "((a{100}){100}){100}")', '"((a{100}){100}){100}"', /repe/],
    [`re_match(user.locale, "${'a'.repeat(201)}")`, `"${'a'.repeat(201)}"`, /100 characters/],
    [
      'user.groups.all(a, user.groups.all(b, user.groups.all(c, a == c)))',
      'user.groups.all(c, a == c)',
      /may be nested 2 deep/,
    ],
    ['check("fly", "faculty", "f1")', '"fly"', /no permission or relation "fly"; it has admin/],
    ['check("admin", "school", "f1")', '"school"', /no object type "school"; there are user, faculty/],
    ['is_member("faculty", "f1")', 'is_member("faculty", "f1")', /no permission or relation "member"/],
    ['is_member("outbox_fence", "main")', '"outbox_fence"', /no object type/],
    [`[${Array(65).fill('1').join(', ')}].exists(x, x == 1)`, '', /maxListElements/],
    [`${'('.repeat(30)}true${')'.repeat(30)}`, '', /maxDepth/],
    [`${'true && '.repeat(300)}true`, '', /maxAstNodes/],
    [`"${'x'.repeat(4100)}" == ""`, 'x', /at most 4096 characters/],
  ];
  for (const [source, place, message] of rows) {
    const error = refusal(source);
    const name = source.length > 80 ? `${source.slice(0, 80)}...` : source;
    t.ok(error !== null, `refused: ${name}`);
    t.match(error?.message, message, name);
    if (place.length > 1) t.equal(source.slice(error?.start, error?.end), place, `place of ${name}`);
    t.ok((error?.start ?? -1) >= 0 && (error?.start ?? 0) <= source.length, `a place within ${name}`);
  }
});

/** A user of a real database in a real graph, for all tests of this file. */
async function makeWorld() {
  const database = await makeDatabase();
  const db = openDatabase(database.url, 3, () => {});
  const { store } = await startGraphStore(t);
  t.teardown(async () => {
    await db.close();
    await database.drop();
  });
  const by: Actor = { kind: 'setup', userId: null, name: 'test', requestId: 'r', address: '' };
  const user = await addUser(db, {
    externalId: 'e1',
    fundingType: 'budget',
    nationalityType: 'domestic',
    educationForm: 'full_time',
    primaryChannel: 'TELEGRAM',
  });
  for (const role of ['editor', 'tutor']) await grantUserRole(db, user.id, role, by);
  await new Deliverer(db, schema).prepare(store);
  const tuples = [
    'faculty:f1#staff@user:e1',
    'study_group:g1#member@user:e1',
    'study_group:g2#member@user:e1',
    'study_group:g2#teacher@user:e1',
    'study_group:g3#teacher@user:e1',
  ];
  await store.write(tuples.map(text => ({ operation: 'touch', tuple: tuple(text) })));
  // A fast answer may be of a moment ago: until that lies behind these writes, a question is asked once more than
  // counted below.
  const last = {
    resourceType: 'study_group',
    resourceId: 'g3',
    permission: 'teacher',
    subjectType: 'user',
    subjectId: 'e1',
  };
  await until(async () => (await store.checkBulk([last], 'fast'))[0] === true);
  const graph = new Graph(Date.now);
  graph.useStore(store);
  return { db, store, graph, by, user, caller: { kind: 'user', userId: user.id } as const };
}
const world = await makeWorld();

t.test('a policy makes as few graph checks as possible, and none when known facts decide', async t => {
  const { caller, db, store, user } = world;
  let now = Date.now();
  const graph = new Graph(() => now);
  graph.useStore(store);
  const contexts = new SubjectContexts(db, graph, Date.now);
  const policies = new Policies(contexts, graph, Date.now);
  let trips = 0;
  const checkBulk = store.checkBulk.bind(store);
  store.checkBulk = (...args) => {
    trips++;
    return checkBulk(...args);
  };
  const rows: Array<[source: string, verdict: string, trips: number]> = [
    ['true', 'allowed', 0],
    ['user.locale == "ru" && user.funding_type == "budget"', 'allowed', 0],
    [`user.id == ${user.id}`, 'allowed', 0],
    ['user.id == 9007199254740993', 'denied', 0],
    ['9007199254740993 == 9007199254740992', 'denied', 0],
    ['has_role("editor")', 'allowed', 0],
    ['has_role("admin")', 'denied', 0],
    ['has_any_role("a", "b", "tutor")', 'allowed', 0],
    ['has_any_role("a")', 'denied', 0],
    ['"g1" in user.groups && principal.kind == "user"', 'allowed', 0],
    ['"g3" in user.groups', 'denied', 0],
    ['re_match(user.external_id, "^e[0-9]+$")', 'allowed', 0],
    ['check("view_all", "faculty", "f1")', 'allowed', 1],
    ['check("view_all", "faculty", "f2")', 'denied', 1],
    ['!check("view_all", "faculty", "f2")', 'allowed', 1],
    ['is_member("study_group", "g3")', 'denied', 1],
    ['is_member("study_group", "g1")', 'allowed', 1],
    ['has_role("editor") || check("view_all", "faculty", "f1")', 'allowed', 0],
    ['check("view_all", "faculty", "f1") || has_role("editor")', 'allowed', 0],
    ['check("view_all", "faculty", "f1") && has_role("admin")', 'denied', 0],
    ['has_role("editor") && "g1" in user.groups && check("view_all", "faculty", "f1")', 'allowed', 1],
    ['check("view_all", "faculty", "f2") || check("view_all", "faculty", "f1")', 'allowed', 1],
    ['user.groups.exists(g, check("view_all", "study_group", g))', 'allowed', 1],
    ['user.groups.all(g, check("view_all", "study_group", g))', 'denied', 1],
    ['check("view_all", "faculty", "f2") ? true : check("view_all", "faculty", "f1")', 'allowed', 2],
    ['1 / 0 == 1', 'failed', 0],
    ['user.roles[7] == "x"', 'failed', 0],
  ];
  await policies.decide('user.groups.size() > 0', caller);
  await graph.check({
    resourceType: 'faculty',
    resourceId: 'f',
    permission: 'admin',
    subjectType: 'user',
    subjectId: 'x',
  });
  for (const [source, verdict, wanted] of rows) {
    trips = 0;
    // Later than any answer is remembered.
    now += 1001;
    const answer = policies.decide(source, caller);
    t.equal(answer instanceof Promise, wanted > 0, `${source}: ${wanted > 0 ? 'asks' : 'answers at once'}`);
    const { kind, reason, rounds } = await answer;
    t.equal(kind, verdict, `${source} ${reason}`);
    t.equal(trips, wanted, `${source}: questions`);
    t.equal(rounds, wanted);
  }
  const nested = ['a', 'b', 'c', 'd', 'e'].reduce(
    (rest, id) => `check("admin", "faculty", "${id}") ? true : (${rest})`,
    'false',
  );
  trips = 0;
  t.match(await policies.decide(nested, caller), { kind: 'failed', rounds: 4, reason: /4 times/ });
  t.equal(trips, 4, 'a policy that asks without end is stopped');

  const again = 'check("view_all", "faculty", "f1") && is_member("study_group", "g1")';
  now += 1001;
  await policies.decide(again, caller);
  trips = 0;
  t.match(
    policies.decide(again, caller),
    { kind: 'allowed', rounds: 0, checks: { length: 2 } },
    'remembered for a moment',
  );
  graph.delivered('');
  t.ok(policies.decide(again, caller) instanceof Promise, 'until something reaches the graph');
  now += 1001;
  t.ok(policies.decide(again, caller) instanceof Promise, 'and for a second at most');
});

t.test('a service key is not a user: a policy that uses user fails, one that uses principal does not', async t => {
  const { db, graph } = world;
  const policies = new Policies(new SubjectContexts(db, graph, Date.now), graph, Date.now);
  const key = { kind: 'service', keyId: 7 } as const;
  const rows: Array<[string, string]> = [
    ['principal.kind == "service" && principal.service_key_id == 7', 'allowed'],
    ['principal.kind == "service" || user.locale == "ru"', 'allowed'],
    ['user.locale == "ru"', 'failed'],
    ['has_role("editor")', 'failed'],
    ['check("view_all", "faculty", "f1")', 'failed'],
    ['!has_role("editor")', 'failed'],
    ['!check("view_all", "faculty", "f1")', 'failed'],
  ];
  for (const [source, verdict] of rows) t.equal((await policies.decide(source, key)).kind, verdict, source);
});

t.test('without a graph store a policy is unavailable, unless its result does not depend on the graph', async t => {
  const { caller, db } = world;
  const graph = new Graph(Date.now);
  const policies = new Policies(new SubjectContexts(db, graph, Date.now), graph, Date.now);
  const rows: Array<[string, string]> = [
    ['!check("view_all", "faculty", "f1")', 'unavailable'],
    ['check("view_all", "faculty", "f1")', 'unavailable'],
    ['user.groups.size() == 0', 'unavailable'],
    ['has_role("editor") || check("view_all", "faculty", "f1")', 'allowed'],
    ['has_role("absent") && check("view_all", "faculty", "f1")', 'denied'],
  ];
  for (const [source, verdict] of rows) t.equal((await policies.decide(source, caller)).kind, verdict, source);
});

t.test('a store that is being filled is not asked, so no check is answered no meanwhile', async t => {
  const { db, graph, store } = world;
  const question = {
    resourceType: 'faculty',
    resourceId: 'f1',
    permission: 'view_all',
    subjectType: 'user',
    subjectId: 'e1',
  };
  const kind = (asked: Promise<unknown>) =>
    asked.then(String, (e: unknown) => (e instanceof GraphError ? e.kind : String(e)));
  t.equal(await graph.check(question), true);
  const [mark] = await readMarks(store, 'loaded');
  await store.write([{ operation: 'delete', tuple: mark! }]);
  t.equal(await kind(graph.check(question)), 'unavailable');
  t.equal(await kind(graph.lookupResources('study_group', 'view_own_data', 'e1')), 'unavailable');
  t.equal(await kind(graph.lookupUsers('study_group', 'g1', 'view_own_data')), 'unavailable');
  t.equal(await kind(graph.checkWithSteps(question)), 'unavailable');
  await new Deliverer(db, schema).prepare(store);
  t.equal(await graph.check(question), true, 'and asked again when it has everything');
  graph.delivered('no token of this store');
  t.equal(await graph.check(question), true, 'a token of a store that is gone does no harm');
});

t.test('groups are looked up only when the answer depends on them', async t => {
  const { caller, db } = world;
  let lookups = 0;
  const graph = new Graph(Date.now);
  graph.useStore(world.store);
  const counted = {
    lookupResources: (...args: Parameters<Graph['lookupResources']>) => {
      lookups++;
      return graph.lookupResources(...args);
    },
  };
  const rows: Array<[source: string, verdict: string, lookups: number]> = [
    ['has_role("editor") || "g1" in user.groups', 'allowed', 0],
    ['"g1" in user.groups || has_role("editor")', 'allowed', 0],
    ['"g1" in user.groups && has_role("absent")', 'denied', 0],
    ['"g1" in user.groups', 'allowed', 1],
    ['user["groups"].size() == 2', 'allowed', 1],
    ['check("view_all", "faculty", "f1") ? "g1" in user.groups : false', 'allowed', 1],
    ['check("view_all", "faculty", "f2") ? "g1" in user.groups : false', 'denied', 0],
    ['user.groups.exists(g, check("view_all", "study_group", g))', 'allowed', 1],
  ];
  for (const [source, verdict, wanted] of rows) {
    lookups = 0;
    const policies = new Policies(new SubjectContexts(db, counted, Date.now), graph, Date.now);
    const { kind, reason } = await policies.decide(source, caller);
    t.equal(kind, verdict, `${source} ${reason}`);
    t.equal(lookups, wanted, `${source}: lookups`);
  }
});

t.test('one malformed check does not affect the checks sent with it', async t => {
  const { db, store, caller } = world;
  const graph = new Graph(Date.now);
  graph.useStore(store);
  const policies = new Policies(new SubjectContexts(db, graph, Date.now), graph, Date.now);
  const bad = ['', 'Bad Type', 'x'.repeat(300), 'no_such_type'];
  for (const type of bad) {
    const [refused, good] = await Promise.all([
      graph
        .check({ resourceType: type, resourceId: 'x', permission: 'admin', subjectType: 'user', subjectId: 'e1' })
        .catch((e: unknown) => (e instanceof GraphError ? e.kind : String(e))),
      policies.decide('check("view_all", "faculty", "f1")', caller),
    ]);
    t.equal(refused, 'refused', `type "${type.slice(0, 20)}"`);
    t.match(good, { kind: 'allowed', reason: '' });
    graph.forget();
  }
  t.equal((await policies.decide('is_member(user.locale + " ", "x")', caller)).kind, 'failed');
  t.equal((await policies.decide('!is_member(user.locale + " ", "x")', caller)).kind, 'failed');
});

t.test('a check that the graph refuses is an error of its operand, and the rest of the policy counts', async t => {
  const { db, store, caller } = world;
  const graph = new Graph(Date.now);
  graph.useStore(store);
  const policies = new Policies(new SubjectContexts(db, graph, Date.now), graph, Date.now);
  const holds = 'check("view_all", "faculty", "f1")';
  // There is no type "ru", and no object has an id without a letter.
  for (const [bad, why] of [
    ['is_member(user.locale, "x")', /there is no object type "ru"/],
    ['["", "g9"].exists(x, is_member("study_group", x))', /the id "" must not be empty/],
  ] as const)
    for (const [source, kind] of [
      [`${bad} || ${holds}`, 'allowed'],
      [`${holds} || ${bad}`, 'allowed'],
      [`!(${holds} && !${bad}) || ${holds}`, 'allowed'],
      [`["g1"].exists(g, ${bad} || is_member("study_group", g))`, 'allowed'],
      [`${bad} && !${holds}`, 'denied'],
      [`${bad} || !${holds}`, 'failed'],
    ] as const)
      t.match(await policies.decide(source, caller), { kind, reason: kind === 'failed' ? why : '' }, source);
});

t.test('the cached context of a user is removed when it changes, also while it is being loaded', async t => {
  const { by, db, graph, user } = world;
  let hold: Promise<void> = Promise.resolve();
  let release = (): void => {};
  /** The database, whose answers can be held back. */
  const slow: Queryable = {
    async query(text, values) {
      const answer = await db.query(text, values);
      await hold;
      return answer as never;
    },
  };
  let now = 1000;
  const contexts = new SubjectContexts(slow, graph, () => now);
  const rolesOf = async () => [...((await contexts.load(user.id, false))?.roles ?? [])];
  t.same(await rolesOf(), ['editor', 'tutor']);
  t.ok(contexts.peek(user.id) !== undefined);
  t.equal(contexts.peek(user.id)?.hasGroups, false, 'no policy needed the groups');
  now = 30_999;
  t.ok(contexts.peek(user.id) !== undefined);
  now = 31_001;
  t.equal(contexts.peek(user.id), undefined, 'after 30 s it is read again');
  hold = new Promise(resolve => {
    release = resolve;
  });
  const reading = contexts.load(user.id, false);
  await grantUserRole(db, user.id, 'new', by);
  contexts.invalidateUser(user.id);
  release();
  await reading;
  t.equal(contexts.peek(user.id), undefined, 'what was read before the change is not remembered');
  t.same(await rolesOf(), ['editor', 'new', 'tutor']);
  t.same((await contexts.load(user.id, true))?.user.groups, ['g1', 'g2']);
  contexts.invalidateGroups(['someone']);
  t.ok(contexts.peek(user.id) !== undefined, 'a change of another user does not remove it');
  contexts.invalidateGroups(['e1']);
  t.equal(contexts.peek(user.id), undefined);
  t.equal(await contexts.load(user.id + 1000, false), null, 'a user who does not exist has no context');
});

t.test('a policy that does not compile is reported, once a minute', async t => {
  const { caller, db, graph } = world;
  let now = 0;
  const told: string[] = [];
  const policies = new Policies(
    new SubjectContexts(db, graph, () => now),
    graph,
    () => now,
    (policy, reason) => told.push(`${policy}: ${reason}`),
  );
  for (const at of [1000, 2000, 60_000, 62_000]) {
    now = at;
    t.match(await policies.decide('1u == 1u', caller), { kind: 'failed', start: 0, end: 2 });
  }
  const line = /^1u == 1u: the stored policy does not compile: unsigned numbers/;
  t.match(told, [line, line]);
  t.equal(told.length, 2);
});
