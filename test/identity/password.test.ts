import fs from 'node:fs';
import os from 'node:os';
import bcrypt from 'bcrypt';
import t from 'tap';
import {
  hashOfNoPassword,
  hashPassword,
  PASSWORD_COST,
  passwordProblem,
  passwordThread,
  setPasswordCost,
} from '../../src/identity/password.ts';

t.test('a password is stored as bcrypt of cost 12', async t => {
  t.match(await hashPassword('a password'), /^\$2b\$12\$[./\w]{53}$/);
});

t.test('the service itself leaves the cost of a password as it is', async t => {
  const sources = fs.globSync('{src,workers,sdk,deploy,bin}/**/*.{ts,js}', {
    exclude: name => name === 'node_modules',
  });
  const naming = sources.filter(file => fs.readFileSync(file, 'utf8').includes('setPasswordCost'));
  t.same(naming, ['src/identity/password.ts'], 'tests alone lower it');
});

t.test('an unknown account is compared with a hash of the cost that accounts have', async t => {
  t.teardown(() => setPasswordCost(PASSWORD_COST));
  for (const cost of [PASSWORD_COST, 4]) {
    setPasswordCost(cost);
    // One that is malformed would be refused at once, and tell that there is no such account.
    t.match(hashOfNoPassword(), /^\$2b\$\d\d\$[./A-Za-z0-9]{53}$/);
    t.equal(bcrypt.getRounds(hashOfNoPassword()), cost);
    t.equal(bcrypt.getRounds(await hashPassword('a password')), cost);
  }
  for (const wrong of [3, 13, 4.5, Number.NaN]) t.throws(() => setPasswordCost(wrong), /4 to 12/, String(wrong));
});

t.test('the thread may end while passwords wait, and another one goes on', async t => {
  const thread = passwordThread();
  t.teardown(() => thread.end());
  const waiting = Array.from({ length: 20 }, () => thread.run({ password: 'a password', cost: PASSWORD_COST }));
  const ended = Promise.allSettled(waiting);
  await thread.end();
  const outcomes = await ended;
  t.ok(
    outcomes.every(o => o.status === 'rejected' || 'hash' in o.value),
    'no request is left without an answer',
  );
  t.match(outcomes.at(-1), { status: 'rejected', reason: /the thread that checks passwords ended/ });
  t.match(await thread.run({ password: 'a password', cost: PASSWORD_COST }), { hash: /^\$2b\$12\$/ });
});

t.test('passwords are computed behind what else the processor has to do', async t => {
  const before = os.getPriority();
  const threads = new Set(fs.readdirSync('/proc/self/task'));
  const thread = passwordThread();
  t.teardown(() => thread.end());
  await thread.run({ password: 'a password', cost: PASSWORD_COST });
  const added = fs.readdirSync('/proc/self/task').filter(id => !threads.has(id));
  const nice = added.map(id => os.getPriority(Number(id)));
  t.ok(nice.includes(10), `priorities of the threads that came: ${nice.join(' ')}`);
  t.equal(os.getPriority(), before, 'the main thread keeps its own');
});

t.test('a password has 10 to 72 bytes and no NUL', async t => {
  t.same(passwordProblem('123456789'), { message: 'must have at least 10 bytes', code: 'too_few_bytes', limit: 10 });
  t.equal(passwordProblem('1234567890'), null);
  t.equal(passwordProblem('x'.repeat(72)), null);
  t.match(passwordProblem('x'.repeat(73)), {
    message: /has 73 bytes; at most 72/,
    code: 'too_many_bytes',
    limit: 72,
  });
  t.equal(passwordProblem('ж'.repeat(36)), null);
  t.match(passwordProblem('ж'.repeat(37)), { message: /a Cyrillic letter takes two/ });
  t.match(passwordProblem('with a \0 inside'), { message: /NUL/, code: 'malformed' });
});
