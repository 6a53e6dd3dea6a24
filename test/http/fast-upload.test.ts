import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import t from 'tap';
import { startServer } from '../../src/http/server.ts';
import { testIntake } from '../support/intake.ts';

/** Sends as fast as it can, from a process of its own: in this one it would wait for the server each time. */
const SENDER = `
  const net = require('node:net');
  process.once('message', ({ port, size }) => {
    const block = Buffer.alloc(1024 * 1024, 7);
    let [answer, sentAll] = ['', false];
    // It looks at nothing before it is done, and reads what it was answered then.
    const tell = () => {
      const status = /^HTTP.1.1 (...) /.exec(answer);
      if (status !== null && sentAll) process.send(Number(status[1]), () => process.exit());
    };
    const socket = net.connect(port, '127.0.0.1');
    socket.on('data', part => {
      answer += part;
      tell();
    });
    socket.write('PUT /x HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nContent-Length: ' + size + '\\r\\n\\r\\n');
    let sent = 0;
    const go = () => {
      while (sent < size) {
        sent += block.length;
        if (!socket.write(block)) return socket.once('drain', go);
      }
      sentAll = true;
      tell();
    };
    go();
  });`;

/** After a read of at least this many bytes, the library reads the same connection again before any other. */
const READ_AGAIN = 512 * 1024;

t.test('however fast a client sends, no read of its bytes fills the server, and a pause holds', async t => {
  const reads: number[] = [];
  let [size, whilePaused] = [0, 0];
  const server = await startServer('127.0.0.1', 0, {
    triggerPrefix: '/t/',
    clientAddress: peer => peer,
    intake: testIntake(t),
    handleTrigger: () => undefined,
    async handleRoute(x) {
      let paused = false;
      await x.takeBody().pump(chunk => {
        reads.push(chunk.length);
        size += chunk.length;
        if (paused) whilePaused++;
        paused = true;
        // As long as the thread is busy, everything the kernel takes in waits.
        if (reads.length % 20 === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
        return new Promise(resolve =>
          setImmediate(() => {
            paused = false;
            resolve();
          }),
        );
      });
      await x.reply({ status: 200, headers: [], body: '' });
    },
    onUnknownError: error => t.fail(String(error)),
  });
  t.teardown(() => server.close());
  t.ok(server.bounded);
  const script = path.join(t.testdir({ 'sender.cjs': SENDER }), 'sender.cjs');
  const sender = fork(script, { execArgv: [], env: {} });
  const done = once(sender, 'message');
  sender.send({ port: server.port, size: 100 * 1024 * 1024 });
  t.same(await done, [200, undefined]);
  t.equal(size, 100 * 1024 * 1024);
  t.ok(Math.max(...reads) < READ_AGAIN, `the largest read had ${Math.max(...reads)} bytes`);
  t.equal(whilePaused, 0, 'nothing came after a pause');
});

t.test('a body that is not kept is answered, and dropped for as long as its client sends on', async t => {
  for (const what of ['at once', 'after a pause', 'never'] as const) {
    let replied = false;
    const server = await startServer('127.0.0.1', 0, {
      triggerPrefix: '/t/',
      clientAddress: peer => peer,
      intake: testIntake(t),
      handleTrigger: () => undefined,
      async handleRoute(x) {
        let chunks = 0;
        const body = x.takeBody();
        // The library was told to pause when the first of it came.
        if (what === 'never') await new Promise(resolve => setTimeout(resolve, 50));
        else
          await body
            .pump(() => {
              if (++chunks < 3) return null;
              if (what === 'at once') throw new Error('no room');
              return new Promise((_, reject) => setImmediate(() => reject(new Error('no room'))));
            })
            .catch(() => {});
        await x.reply({ status: 507, headers: [], body: 'no room' });
        replied = true;
      },
      onUnknownError: error => t.fail(String(error)),
    });
    const script = path.join(t.testdir({ 'sender.cjs': SENDER }), 'sender.cjs');
    const sender = fork(script, { execArgv: [], env: {} });
    const done = once(sender, 'message');
    sender.send({ port: server.port, size: 60 * 1024 * 1024 });
    t.same(await done, [507, undefined], `${what}: all of it was read`);
    t.ok(replied);
    server.close();
  }
});
