import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import t from 'tap';
import { loadConfig } from '../../src/config/load.ts';
import { fromGraphId, toGraphId } from '../../src/graph/graph-ids.ts';
import { GraphSchema, readGraphSchema } from '../../src/graph/graph-schema.ts';
import { GraphError, GraphStore } from '../../src/graph/graph-store.ts';
import { remoteStore } from '../../src/graph/remote-store.ts';
import { matchesFilter, type Tuple, tupleText } from '../../src/graph/tuple.ts';
import { startEmbeddedSpicedb } from '../../src/supervisor/stores/embedded-spicedb.ts';
import { BARE_ENV } from '../support/bare-env.ts';
import { startTlsGate } from '../support/tls-gate.ts';

const schema = readGraphSchema();

function parse(text: string): Tuple {
  const [, resourceType = '', resourceId = '', relation = '', subjectType = '', subjectId = ''] =
    /^(\w+):([^#]+)#(\w+)@(\w+):(.+)$/.exec(text) ?? [];
  return { resourceType, resourceId, relation, subjectType, subjectId, subjectRelation: '' };
}

async function world(t: { teardown(fn: () => unknown): void }) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'g-'));
  const spicedb = await startEmbeddedSpicedb(path.join(directory, 'run'), null, BARE_ENV);
  const store = new GraphStore({ endpoint: spicedb.endpoint, token: 'any', tls: false });
  t.teardown(async () => {
    store.close();
    await spicedb.stop();
    fs.rmSync(directory, { recursive: true, force: true });
  });
  return { spicedb, store, directory };
}

type Question = { resourceType: string; resourceId: string; permission: string; userId: string };

async function checkOne(store: GraphStore, { userId, ...c }: Question): Promise<boolean> {
  const [answer] = await store.checkBulk([{ ...c, subjectType: 'user', subjectId: userId }], 'latest');
  if (typeof answer === 'boolean') return answer;
  throw answer;
}

/** How a call was refused. */
const kindOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'done',
    (error: unknown) => (error instanceof GraphError ? error.kind : String(error)),
  );

/** The relationships of a small university. */
const TUPLES = [
  'faculty:f1#dean@user:dean',
  'faculty:f1#staff@user:fstaff',
  'faculty:f2#parent@faculty:f1',
  'faculty:f2#dean@user:dean2',
  'department:d1#parent@faculty:f1',
  'department:d1#head@user:head',
  'department:d1#staff@user:dstaff',
  'program:p1#parent@department:d1',
  'program:p1#director@user:director',
  'program:p1#staff@user:pstaff',
  'program:p2#parent@faculty:f2',
  'stream:s1#parent@program:p1',
  'stream:s1#curator@user:scurator',
  'stream:s1#teacher@user:steacher',
  'stream:s1#foreign_teacher@user:sforeign',
  'study_group:g1#parent@stream:s1',
  'study_group:g1#curator@user:gcurator',
  'study_group:g1#teacher@user:gteacher',
  'study_group:g1#foreign_teacher@user:gforeign',
  'study_group:g1#member@user:student',
  'subgroup:u1#parent@study_group:g1',
  'subgroup:u1#member@user:student',
  'system_role:admin#member@user:root',
  'global_role:tutor#member@user:gteacher',
  'plugin_role:grades/editor#member@user:gteacher',
  'nationality_category:foreign#member@user:student',
  'nationality_category:foreign#curator@user:ncurator',
];

/** Who has a permission on an object, and who has not. */
const CHECKS: ReadonlyArray<readonly [what: string, yes: string, no: string]> = [
  ['faculty:f1#admin', 'dean', 'fstaff dean2 head student stranger'],
  ['faculty:f1#view_all', 'dean fstaff', 'dean2 head dstaff director'],
  ['faculty:f2#admin', 'dean dean2', 'fstaff head'],
  ['faculty:f2#view_all', 'dean dean2 fstaff', 'head student'],
  ['department:d1#admin', 'dean head', 'dstaff fstaff dean2'],
  ['department:d1#view_all', 'dean head dstaff fstaff', 'director pstaff dean2'],
  ['program:p1#admin', 'dean head director', 'pstaff dstaff dean2'],
  ['program:p1#view_all', 'dean head director pstaff dstaff fstaff', 'scurator steacher dean2'],
  ['program:p2#admin', 'dean dean2', 'head director'],
  ['stream:s1#admin', 'dean head director scurator', 'steacher sforeign dean2'],
  ['stream:s1#view_all', 'dean fstaff head dstaff director pstaff scurator steacher', 'sforeign gteacher'],
  ['stream:s1#view_foreign', 'sforeign steacher scurator dean', 'gforeign student dean2'],
  ['study_group:g1#admin', 'dean head director scurator gcurator', 'gteacher steacher gforeign student'],
  ['study_group:g1#view_all', 'dean pstaff steacher scurator gcurator gteacher', 'sforeign gforeign student dean2'],
  ['study_group:g1#view_foreign', 'gforeign sforeign gteacher steacher dean', 'student stranger dean2'],
  ['study_group:g1#view_own_data', 'student', 'dean gcurator gteacher'],
  ['subgroup:u1#view_own_data', 'student', 'gcurator dean stranger'],
  ['system_role:admin#is_member', 'root', 'dean student'],
  ['system_role:none#is_member', '', 'root'],
  ['global_role:tutor#is_member', 'gteacher', 'root student'],
  ['plugin_role:grades/editor#is_member', 'gteacher', 'root'],
  ['nationality_category:foreign#view_members', 'ncurator', 'student dean'],
];

t.test(
  'the schema grants and refuses the right permissions on the embedded engine, through the client of a remote store',
  async t => {
    const { store } = await world(t);
    t.equal(await store.readSchema(), null, 'an embedded store begins empty');
    const check = (permission: string) =>
      checkOne(store, { resourceType: 'faculty', resourceId: 'f1', permission, userId: 'dean' });
    t.equal(await kindOf(check('admin')), 'refused', 'without a schema there is no answer, not a no');
    await store.writeSchema(schema.text);
    t.same(
      [...new GraphSchema((await store.readSchema()) ?? '').types.keys()].sort(),
      [...schema.types.keys()].sort(),
      'what the store spells reads the same',
    );
    for (const text of TUPLES) t.same(schema.problems(parse(text)), [], text);
    t.type(await store.write(TUPLES.map(text => ({ operation: 'touch', tuple: parse(text) }))), 'string');
    const asked: Array<Promise<[text: string, wanted: boolean, got: boolean]>> = [];
    for (const [what, yes, no] of CHECKS) {
      const [, resourceType = '', resourceId = '', permission = ''] = /^(\w+):(.+)#(\w+)$/.exec(what) ?? [];
      t.ok(schema.types.get(resourceType)?.permissions.has(permission), `${what} is defined`);
      for (const [users, wanted] of [
        [yes, true],
        [no, false],
      ] as const)
        for (const userId of users.split(' ').filter(u => u !== ''))
          asked.push(
            checkOne(store, { resourceType, resourceId, permission, userId }).then(
              got => [`${what} ${userId}`, wanted, got] as const,
            ),
          );
    }
    const answers = await Promise.all(asked);
    t.ok(answers.length >= 120, `${answers.length} checks`);
    for (const [text, wanted, got] of answers) t.equal(got, wanted, text);

    t.equal(await kindOf(check('fly')), 'refused', 'an unknown permission is an error, not a no');
    t.same((await store.lookupResources('study_group', 'view_own_data', 'student', 'latest')).sort(), ['g1']);
    t.same((await store.lookupResources('faculty', 'admin', 'dean', 'latest')).sort(), ['f1', 'f2']);
    t.same((await store.read({ resourceType: 'study_group', relation: 'member' })).map(tupleText), [
      'study_group:g1#member@user:student',
    ]);
    await store.write([{ operation: 'delete', tuple: parse('study_group:g1#member@user:student') }]);
    await store.write([{ operation: 'delete', tuple: parse('study_group:g1#member@user:student') }]);
    t.same(
      await store.read({ resourceType: 'study_group', relation: 'member' }),
      [],
      'deleting what is gone is no error',
    );
    const unknown = store.write([{ operation: 'touch', tuple: parse('study_group:g1#dean@user:x') }]);
    t.equal(await kindOf(unknown), 'refused', 'the store refuses an unknown relation');
  },
);

t.test('any id is encoded so that the store accepts it, and decoded to the same id', async t => {
  const { store } = await world(t);
  await store.writeSchema(schema.text);
  const ids = [
    'ИВТ-21',
    'a.b@c',
    '=already',
    'plain_1|x/y+z=-',
    ' ',
    '日本語',
    '*',
    '😀',
    'ж'.repeat(250),
    '=',
    'a:b#c',
  ];
  for (const id of ids) {
    t.equal(fromGraphId(toGraphId(id)), id);
    t.match(toGraphId(id), /^[a-zA-Z0-9/_|\-=+]{1,1024}$/);
    const tuple: Tuple = { ...parse('study_group:g#member@user:u'), resourceId: id, subjectId: id };
    t.same(schema.problems(tuple), []);
    await store.write([{ operation: 'touch', tuple }]);
    t.same(await store.read({ resourceType: 'study_group', resourceId: id }), [tuple]);
    t.same(await store.lookupResources('study_group', 'view_own_data', id, 'latest'), [id]);
  }
  t.equal(new Set(ids.map(toGraphId)).size, ids.length, 'no two become one');
});

t.test('when a store ends, callers get an error and its directory is removed', async t => {
  const { directory, spicedb, store } = await world(t);
  await store.writeSchema(schema.text);
  const run = path.join(directory, 'run');
  t.equal(fs.statSync(run).mode & 0o777, 0o700);
  const gone = new Promise(resolve => spicedb.process.once('exit', resolve));
  spicedb.process.kill('SIGKILL');
  await gone;
  const check = checkOne(store, { resourceType: 'faculty', resourceId: 'f', permission: 'admin', userId: 'u' });
  t.equal(await kindOf(check), 'unavailable');
  await spicedb.stop();
  t.notOk(fs.existsSync(run));
  const again = await startEmbeddedSpicedb(run, null, BARE_ENV);
  t.teardown(() => again.stop());
  let text: string | null | undefined;
  while (text === undefined) text = await store.readSchema().catch(() => undefined);
  t.equal(text, null, 'the same client finds the next one, which is empty');
});

t.test('a wrong tuple is refused by field before it is queued', async t => {
  const rows: Array<[Partial<Tuple>, string, RegExp]> = [
    [{ resourceType: 'school' }, '/resource_type', /must be one of user, faculty, department/],
    [{ resourceType: 'outbox_fence' }, '/resource_type', /must be one of/],
    [{ resourceType: 'user' }, '/resource_type', /must not be user, which has no relations/],
    [{ resourceId: '' }, '/resource_id', /must not be empty/],
    [{ resourceId: 'x'.repeat(251) }, '/resource_id', /at most 250 characters/],
    [{ subjectId: 'a\0b' }, '/subject_id', /without NUL/],
    [{ subjectId: '\ud800' }, '/subject_id', /lone surrogates/],
    [
      { relation: 'owner' },
      '/relation',
      /must be one of curator, teacher, foreign_teacher, member, parent of a study_group/,
    ],
    [{ subjectType: 'stream' }, '/subject_type', /must be one of user for the relation member of a study_group/],
    [{ relation: 'parent' }, '/subject_type', /must be one of stream/],
    [{ subjectType: 'stranger' }, '/subject_type', /must be one of/],
    [{ subjectRelation: 'member' }, '/subject_relation', /must be absent/],
  ];
  const right = parse('study_group:g1#member@user:u1');
  t.same(schema.problems(right), []);
  for (const [change, pointer, message] of rows) {
    const problems = schema.problems({ ...right, ...change });
    t.match(problems, [{ pointer, message }], JSON.stringify(change));
  }
  t.match(schema.filterProblems({ resourceType: 'x', relation: 'y' }), [{ pointer: '/resource_type' }]);
  t.match(schema.filterProblems({ resourceType: 'faculty', relation: 'member' }), [{ pointer: '/relation' }]);
  t.same(schema.filterProblems({ subjectType: 'user', subjectId: 'u1' }), []);
  t.ok(matchesFilter({ subjectType: 'user', subjectId: 'u1' }, right));
  t.notOk(matchesFilter({ subjectType: 'user', subjectId: 'u1', relation: 'parent' }, right));
  t.notOk(matchesFilter({ subjectType: 'user', subjectId: 'u2' }, right));
});

t.test('a remote store is reached over TLS only with the configured certificate and key', async t => {
  const { spicedb, directory } = await world(t);
  const gate = await startTlsGate(spicedb.endpoint.slice('unix:'.length), 'preshared');
  t.teardown(() => gate.close());
  const file = path.join(directory, 'ca.pem');
  fs.writeFileSync(file, gate.certificate);
  const connect = (env: Record<string, string>): GraphStore => {
    const store = remoteStore(loadConfig(null, { BOT_SPICEDB_ENDPOINT: `localhost:${gate.port}`, ...env }));
    if (store === null) throw new Error('no store');
    t.teardown(() => store.close());
    return store;
  };

  const store = connect({ BOT_SPICEDB_TOKEN: 'preshared', BOT_SPICEDB_CA_FILE: file });
  await store.writeSchema(schema.text);
  await store.write([{ operation: 'touch', tuple: parse('faculty:f1#dean@user:dean') }]);
  t.ok(await checkOne(store, { resourceType: 'faculty', resourceId: 'f1', permission: 'admin', userId: 'dean' }));
  t.same(await store.lookupResources('faculty', 'admin', 'dean', 'latest'), ['f1'], 'streams pass as well');

  t.equal(await kindOf(connect({ BOT_SPICEDB_TOKEN: 'wrong', BOT_SPICEDB_CA_FILE: file }).readSchema()), 'unavailable');
  t.equal(gate.refused, 1, 'the key was refused');
  t.equal(
    await kindOf(connect({ BOT_SPICEDB_TOKEN: 'preshared' }).readSchema()),
    'unavailable',
    'an unknown authority',
  );
  t.equal(
    await kindOf(
      connect({ BOT_SPICEDB_TOKEN: 'preshared', BOT_SPICEDB_CA_FILE: file, BOT_SPICEDB_TLS: 'false' }).readSchema(),
    ),
    'unavailable',
    'without encryption',
  );

  fs.writeFileSync(file, 'no certificate');
  t.throws(() => connect({ BOT_SPICEDB_CA_FILE: file }), /spicedb\.ca_file: .*ca\.pem cannot be used .*PEM/);
  t.throws(() => connect({ BOT_SPICEDB_CA_FILE: '/nowhere/ca.pem' }), /spicedb\.ca_file: .*ENOENT/);
});
