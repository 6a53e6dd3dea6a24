import fs from 'node:fs';
import os from 'node:os';
import t from 'tap';
import { hashPassword, passwordProblem, passwordThread } from '../../src/identity/password.ts';

/** As new passwords are stored. */
const COST = 12;

t.test('a password is stored as bcrypt of cost 12', async t => {
  t.match(await hashPassword('a password'), /^\$2b\$12\$[./\w]{53}$/);
});

t.test('the service itself leaves the cost of a password as it is', async t => {
  const sources = fs.globSync('src/**/*.ts').filter(file => fs.readFileSync(file, 'utf8').includes('setPasswordCost'));
  t.same(sources, ['src/identity/password.ts'], 'tests alone lower it');
});

t.test('the thread may end while passwords wait, and another one goes on', async t => {
  const thread = passwordThread();
  t.teardown(() => thread.end());
  const waiting = Array.from({ length: 20 }, () => thread.run({ password: 'a password', cost: COST }));
  const ended = Promise.allSettled(waiting);
  await thread.end();
  const outcomes = await ended;
  t.ok(
    outcomes.every(o => o.status === 'rejected' || 'hash' in o.value),
    'no request is left without an answer',
  );
  t.match(outcomes.at(-1), { status: 'rejected', reason: /the thread that checks passwords ended/ });
  t.match(await thread.run({ password: 'a password', cost: COST }), { hash: /^\$2b\$12\$/ });
});

t.test('passwords are computed behind what else the processor has to do', async t => {
  const before = os.getPriority();
  const threads = new Set(fs.readdirSync('/proc/self/task'));
  const thread = passwordThread();
  t.teardown(() => thread.end());
  await thread.run({ password: 'a password', cost: COST });
  const added = fs.readdirSync('/proc/self/task').filter(id => !threads.has(id));
  const nice = added.map(id => os.getPriority(Number(id)));
  t.ok(nice.includes(10), `priorities of the threads that came: ${nice.join(' ')}`);
  t.equal(os.getPriority(), before, 'the main thread keeps its own');
});

t.test('a password has 10 to 72 bytes and no NUL', async t => {
  t.equal(passwordProblem('123456789'), 'must have at least 10 bytes');
  t.equal(passwordProblem('1234567890'), null);
  t.equal(passwordProblem('x'.repeat(72)), null);
  t.match(passwordProblem('x'.repeat(73)), /has 73 bytes; at most 72/);
  t.equal(passwordProblem('ж'.repeat(36)), null);
  t.match(passwordProblem('ж'.repeat(37)), /a Cyrillic letter takes two/);
  t.match(passwordProblem('with a \0 inside'), /NUL/);
});
