import t from 'tap';
import { openDatabase, type Queryable } from '../../src/db/database.ts';
import { RowLookup } from '../../src/db/row-lookup.ts';
import { addSession, findSession } from '../../src/identity/sessions.ts';
import { addUserToken, userTokens } from '../../src/identity/user-tokens.ts';
import { addUser } from '../../src/identity/users.ts';
import { makeDatabase } from '../support/database.ts';

async function open(t: { teardown(fn: () => unknown): void }) {
  const made = await makeDatabase();
  const db = openDatabase(made.url, 4, () => {});
  t.teardown(async () => {
    await db.close();
    await made.drop();
  });
  const texts: string[] = [];
  // Everything the lookups send goes through here, and on to the database.
  const counted: Queryable = {
    query(query, values) {
      texts.push(typeof query === 'string' ? query : query.text);
      return db.query(query, values);
    },
  };
  return { db, counted, texts };
}

t.test('lookups of one event-loop turn are one statement, and each gets its own row or none', async t => {
  const { counted, texts } = await open(t);
  const squares = new RowLookup<{ n: string; square: number }>({
    name: 'squares',
    text: 'SELECT n::text, n * n AS square FROM generate_series(1, 100) n WHERE n::text = ANY ($1::text[])',
    keyOf: row => row.n,
  });
  const keys = ['3', '7', '3', 'absent', '100'];
  t.same(
    (await Promise.all(keys.map(k => squares.find(counted, k)))).map(row => row?.square),
    [9, 49, 9, undefined, 10_000],
  );
  t.equal(texts.length, 1);
  t.equal((await squares.find(counted, '5'))?.square, 25);
  t.equal(texts.length, 2, 'what comes later is asked later');
  const many = await Promise.all(Array.from({ length: 1000 }, (_, k) => squares.find(counted, String((k % 100) + 1))));
  t.ok(many.every((row, k) => row?.square === ((k % 100) + 1) ** 2));
  t.ok(texts.length <= 2 + 5, `${texts.length - 2} statements for 1000 lookups`);
});

t.test('a statement that fails rejects its own lookups, and later ones are asked again', async t => {
  const { counted } = await open(t);
  const broken = new RowLookup<{ n: string }>({
    name: 'broken',
    text: "SELECT n, 1 / (CASE WHEN n = 'bad' THEN 0 ELSE 1 END) FROM unnest($1::text[]) n",
    keyOf: row => row.n,
  });
  const ends = await Promise.allSettled(['a', 'bad', 'b'].map(k => broken.find(counted, k)));
  t.same(
    ends.map(e => e.status),
    ['rejected', 'rejected', 'rejected'],
  );
  t.equal((await broken.find(counted, 'a'))?.n, 'a');
});

t.test('credentials that come together get each its own answer', async t => {
  const { counted, db, texts } = await open(t);
  const { id } = await addUser(db, { displayName: 'A', externalId: 'a', locale: 'en' });
  const tokens: string[] = [];
  for (let k = 0; k < 20; k++)
    tokens.push(
      (await addUserToken(db, 'pht_', { userId: id, name: `t${k}`, expiresAt: k % 2 ? new Date(0) : null })).text,
    );
  const swapped = tokens.map((text, k) => `${text.split('.')[0]}.${tokens[(k + 1) % 20]?.split('.')[1]}`);
  texts.length = 0;
  const found = await Promise.all(
    [...tokens, ...swapped].map(text => userTokens.verify(counted, 'pht_', text, Date.now())),
  );
  t.same(
    found.map(f => f?.name),
    tokens.map((_, k) => (k % 2 ? undefined : `t${k}`)).concat(swapped.map(() => undefined)),
  );
  t.equal(texts.length, 1);
  const login = {
    userId: id,
    via: 'password' as const,
    address: '',
    userAgent: '',
    browser: false,
    withPassword: true,
  };
  const user = await addSession(db, { ...login, kind: 'user' });
  const admin = await addSession(db, { ...login, kind: 'admin' });
  const asked = await Promise.all(
    [user, admin].flatMap(s => [
      findSession(counted, 'user', s.secret, Date.now()),
      findSession(counted, 'admin', s.secret, Date.now()),
    ]),
  );
  t.same(
    asked.map(s => s?.id),
    [user.session.id, undefined, undefined, admin.session.id],
    'a secret counts for its kind alone',
  );
});
