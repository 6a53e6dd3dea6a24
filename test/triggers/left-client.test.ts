import net from 'node:net';
import t from 'tap';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { IDENTITY_CHANGED } from '../../src/identity/identity-changes.ts';
import { addUserToken } from '../../src/identity/user-tokens.ts';
import { addUser } from '../../src/identity/users.ts';
import { request, startTestService } from '../support/service.ts';
import { okPlugin } from '../support/wat.ts';

/** Resolves when so many statements of this database wait for a lock. */
async function untilBlocked(db: Database, count: number): Promise<void> {
  for (;;) {
    const { rows } = await db.query<{ n: number }>(
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    if ((rows[0]?.n ?? 0) >= count) return;
    await new Promise(resolve => setTimeout(resolve, 10));
  }
}

t.test('a client that left while its credential was looked up gets no execution', async t => {
  const s = await startTestService();
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(async () => {
    await db.close();
    await s.stop();
  });
  await s.install(okPlugin('quiet'));
  await s.admin('PUT', '/plugins/quiet/triggers/run/settings', { allow_user_session: true });
  const user = await addUser(db, { displayName: 'Ada' });
  const token = await addUserToken(db, 'pht_', { userId: user.id, name: 'n', expiresAt: null });
  const headers = { authorization: `Bearer ${token.text}` };
  const port = Number(new URL(s.base).port);
  const send = (text: string, id: string): net.Socket => {
    const socket = net.connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(
      `${text} /api/triggers/http/quiet/run HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\nAuthorization: ${headers.authorization}\r\n`,
    );
    return socket;
  };
  const executions = async (id: string): Promise<number> =>
    ((await s.admin('GET', `/plugins/quiet/executions?request_id=${id}`)).json.items as unknown[]).length;
  /** The service has read all its sockets once it answers a request that came later. */
  const seen = () => request(`${s.base}/healthz`);
  t.equal((await s.trigger('quiet/run', { headers: { ...headers, 'x-request-id': 'stays-0001' } })).status, 200);
  t.equal(await executions('stays-0001'), 1);

  /** From now on the credential has to be looked up again, which waits until the function it answers is called. */
  const forgetAndLock = async (): Promise<() => Promise<void>> => {
    await db.query('SELECT pg_notify($1, $2)', [IDENTITY_CHANGED, 'everything']);
    // A change is answered when the service has heard every notification before it.
    await s.admin('PUT', '/plugins/quiet/triggers/run/settings', { allow_user_session: true });
    let release: () => void = () => {};
    let done: Promise<void> = Promise.resolve();
    await new Promise<void>(locked => {
      done = db.withTransaction(async client => {
        await client.query('LOCK TABLE user_tokens IN ACCESS EXCLUSIVE MODE');
        locked();
        await new Promise<void>(resolve => (release = resolve));
      });
    });
    return async () => {
      release();
      await done;
    };
  };
  /** The client leaves while the credential of its request is looked up. */
  const leave = async (socket: net.Socket, unlock: () => Promise<void>): Promise<void> => {
    await untilBlocked(db, 1);
    socket.resetAndDestroy();
    await seen();
    await unlock();
    // Behind the lookup of the one who left.
    t.equal((await s.trigger('quiet/run', { headers })).status, 200);
  };

  const unlockGet = await forgetAndLock();
  const get = send('GET', 'leaves-0001');
  get.write('\r\n');
  await leave(get, unlockGet);
  t.equal(await executions('leaves-0001'), 0, 'a request without a body');

  const post = send('POST', 'leaves-0002');
  post.write('Content-Length: 10\r\n\r\n01234');
  await seen();
  const unlockPost = await forgetAndLock();
  post.write('56789');
  await leave(post, unlockPost);
  t.equal(
    await executions('leaves-0002'),
    0,
    'one whose body was complete when the credential was no longer remembered',
  );
});
