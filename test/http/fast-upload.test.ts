import { fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import t from 'tap';
import { startServer } from '../../src/http/server.ts';

/** Sends as fast as it can, from a process of its own: in this one it would wait for the server each time. */
const SENDER = `
  const http = require('node:http');
  process.once('message', ({ url, size }) => {
    const block = Buffer.alloc(1024 * 1024, 7);
    const request = http.request(url, { method: 'PUT', headers: { 'Content-Length': size } }, answer => {
      answer.resume();
      process.send(answer.statusCode, () => process.disconnect());
    });
    let sent = 0;
    const go = () => {
      while (sent < size) {
        sent += block.length;
        if (!request.write(block)) return request.once('drain', go);
      }
      request.end();
    };
    go();
  });`;

/** The library reads again at once, without looking at anybody else, after a read that has filled this much. */
const READ_AGAIN = 512 * 1024;

t.test('however fast somebody sends, no read of his bytes fills the server, and a pause holds', async t => {
  const reads: number[] = [];
  let [size, whilePaused] = [0, 0];
  const server = await startServer('127.0.0.1', 0, {
    triggerPrefix: '/t/',
    clientAddress: peer => peer,
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
  sender.send({ url: `http://127.0.0.1:${server.port}/x`, size: 100 * 1024 * 1024 });
  t.same(await done, [200, undefined]);
  t.equal(size, 100 * 1024 * 1024);
  t.ok(Math.max(...reads) < READ_AGAIN, `the largest read had ${Math.max(...reads)} bytes`);
  t.equal(whilePaused, 0, 'nothing came after a pause');
});
