import { once } from 'node:events';
import net from 'node:net';
import { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import { startServer } from '../../src/http/server.ts';
import { WaitingAnswers } from '../../src/http/waiting-answers.ts';
import { testIntake } from '../support/intake.ts';
import { until } from '../support/until.ts';

/** What clients do not take of their answers is bounded (docs/limits.md). */

const MIB = 2 ** 20;
const BODY = Buffer.alloc(16 * MIB, 'a');
const CHUNKED = 'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n';

async function server(t: Test, waitingBytesMax: number) {
  let cuts = 0;
  const started = await startServer('127.0.0.1', 0, {
    triggerPrefix: '/t/',
    clientAddress: peer => peer,
    intake: testIntake(t),
    waitingBytesMax,
    onAnswersCut: () => cuts++,
    handleTrigger: () => undefined,
    async handleRoute(x) {
      const isFile = x.path === '/file';
      const open = async () => Readable.from([BODY.subarray(0, 9 * MIB), BODY.subarray(9 * MIB)]);
      await x.reply({ status: 200, headers: [], body: isFile ? { length: BODY.length, open } : BODY });
    },
    onUnknownError: error => t.fail(String(error)),
  });
  t.teardown(() => started.close());
  /** A client that asks and does not read. */
  const ask = async (path: string, rest = '\r\n') => {
    const socket = net.connect(started.port, '127.0.0.1');
    t.teardown(() => socket.destroy());
    await once(socket, 'connect');
    socket.pause();
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${rest}`);
    let bytes = 0;
    let isClosed = false;
    socket.on('close', () => (isClosed = true)).on('error', () => {});
    const read = (): void => void socket.on('data', (part: Buffer) => (bytes += part.length)).resume();
    return { socket, read, bytes: () => bytes, isClosed: () => isClosed };
  };
  return { ask, cuts: () => cuts, port: started.port };
}

t.test(
  'when more waits than may, the clients that have waited longest are cut off, and the others get all',
  async t => {
    const s = await server(t, 40 * MIB);
    for (const rest of ['\r\n', CHUNKED]) {
      const before = s.cuts();
      const clients: Array<Awaited<ReturnType<typeof s.ask>>> = [];
      for (let k = 0; k < 6; k++) {
        const client = await s.ask('/', rest);
        clients.push(client);
        // In this order.
        await once(client.socket, 'readable');
      }
      await until(() => s.cuts() > before);
      for (const client of clients) client.read();
      await until(() => clients.every(c => c.isClosed() || c.bytes() > BODY.length));
      const whole = clients.map(c => c.bytes() > BODY.length);
      t.equal(whole[0], false, 'the first is cut off');
      t.equal(whole[5], true, 'the last gets all');
      t.ok(whole.lastIndexOf(false) < whole.indexOf(true), `from the first on: ${whole}`);
      for (const client of clients) client.socket.destroy();
    }
  },
);

t.test('a client that takes its answer slowly gets all of it', async t => {
  const s = await server(t, 40 * MIB);
  for (const [path, rest] of [
    ['/', '\r\n'],
    ['/', CHUNKED],
    ['/file', '\r\n'],
    ['/file', CHUNKED],
  ] as const) {
    const client = await s.ask(path, rest);
    await once(client.socket, 'readable');
    client.read();
    await until(() => client.bytes() > BODY.length);
    // A body in chunks is the last request of its connection, whatever the answer is (RFC 9112 section 9.6).
    if (rest === CHUNKED) await until(client.isClosed);
    else t.notOk(client.isClosed());
    client.socket.destroy();
  }
  t.equal(s.cuts(), 0);
});

t.test('what waits counts until it is taken', t => {
  let cuts = 0;
  const waiting = new WaitingAnswers(10, () => cuts++);
  const cut: string[] = [];
  const [a, b, c] = [{}, {}, {}];
  waiting.hold(a, 4, () => cut.push('a'));
  waiting.hold(b, 4, () => cut.push('b'));
  waiting.release(a);
  waiting.release(a);
  t.equal(waiting.bytes, 4);
  waiting.hold(a, 6, () => cut.push('a'));
  t.same([cut, cuts], [[], 0]);
  waiting.hold(c, 5, () => cut.push('c'));
  t.same([cut, cuts, waiting.bytes], [['b', 'a'], 1, 5], 'from the one that has waited longest');
  waiting.release(c);
  waiting.hold(b, 99, () => cut.push('b'));
  t.same(cut, ['b', 'a'], 'one alone is never cut off');
  t.end();
});
