import t from 'tap';
import { LIMITS } from '../../src/base/limits.ts';
import { passwordProblem, passwordThread, startPasswordWorker } from '../../src/identity/password.ts';

t.test('at most the limit of passwords wait; when the thread ends, a new one continues', async t => {
  const workers: Array<ReturnType<typeof startPasswordWorker>> = [];
  const thread = passwordThread(() => {
    const worker = startPasswordWorker();
    workers.push(worker);
    return worker;
  });
  t.teardown(() => Promise.all(workers.map(w => w.terminate())));
  const waiting = Array.from({ length: LIMITS.passwordsWaitingMax }, () =>
    thread.run({ password: 'a password', against: null }),
  );
  const ended = Promise.allSettled(waiting);
  t.throws(() => thread.run({ password: 'one more', against: null }), {
    code: 'unavailable',
    headers: [['Retry-After', '5']],
  });
  await workers[0]?.terminate();
  const outcomes = await ended;
  t.ok(
    outcomes.every(o => o.status === 'rejected' || 'hash' in o.value),
    'no request is left without an answer',
  );
  t.match(outcomes.at(-1), { status: 'rejected', reason: /the thread that checks passwords ended/ });
  t.match(await thread.run({ password: 'a password', against: null }), { hash: /^\$2b\$12\$/ });
  t.equal(workers.length, 2);
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
