import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { ownDirectory, removeOwnDirectory } from '../../src/base/own-directory.ts';
import { REQUEST_LIMITS } from '../../src/base/request-limits.ts';
import { collectBody } from '../../src/http/collect-body.ts';
import type { Intake, IntakeLimits } from '../../src/http/intake.ts';
import { startServer } from '../../src/http/server.ts';
import { testIntake } from '../support/intake.ts';
import { Wire } from '../support/wire.ts';

const MIB = 1024 * 1024;
const BODY_MAX = 10 * MIB;

type Receiver = {
  base: string;
  intake: Intake;
  /** Names of the files bodies lie in. */
  files(): string[];
  /** Resolves when this host holds so many bytes of bodies. */
  holds(bytes: number): Promise<void>;
  /** A body to the way of triggers (`/t/x`) or of the API (`/x`), of which so much is sent. */
  send(way: string, announced: number, sent: Buffer, address?: string): Promise<Wire>;
  /** Set: answers wait for it, with the body in their hands. */
  hold: Promise<void> | null;
};

/** A server that answers the SHA-256 of a body. The client's address is what it says. */
async function receiver(t: Test, limits: Partial<IntakeLimits> = {}): Promise<Receiver> {
  const intake = testIntake(t, limits);
  const answer = (body: Uint8Array): string => createHash('sha256').update(body).digest('hex');
  const server = await startServer('127.0.0.1', 0, {
    triggerPrefix: '/t/',
    clientAddress: (peer, headers) => headers['x-address'] ?? peer,
    intake,
    async handleTrigger(x) {
      const body = await new Promise<Uint8Array | Error>(resolve => x.collectBody(BODY_MAX, resolve));
      await self.hold;
      if (body instanceof Error) throw body;
      x.replyFlat(200, '', answer(body));
    },
    async handleRoute(x) {
      const body = await collectBody(x.takeBody(), x.openShare(), { name: 'adminBodyBytesMax', bytes: BODY_MAX });
      await self.hold;
      await x.reply({ status: 200, headers: [], body: answer(body) });
    },
    onUnknownError: error => t.fail(String(error)),
  });
  t.teardown(() => server.close());
  const base = `http://127.0.0.1:${server.port}`;
  const self: Receiver = {
    base,
    intake,
    files: () => fs.readdirSync(intake.limits.directory),
    async holds(bytes) {
      while (intake.bytes !== bytes) await nextTurn();
    },
    async send(way, announced, sent, address = '203.0.113.1') {
      const wire = new Wire(base);
      t.teardown(() => wire.close());
      await wire.write(
        `POST ${way} HTTP/1.1\r\nHost: a\r\nX-Address: ${address}\r\nContent-Length: ${announced}\r\n\r\n`,
      );
      await wire.write(sent);
      return wire;
    },
    hold: null,
  };
  return self;
}

const WAYS = ['/t/x', '/x'];
const bytesOf = (size: number): Buffer => Buffer.alloc(size, 'a body that comes in ');

t.test('a body is kept in memory up to 256 KiB and in a file beyond, and arrives whole', async t => {
  const s = await receiver(t);
  for (const way of WAYS)
    for (const size of [
      1,
      REQUEST_LIMITS.bodyInlineBytesMax + 1,
      REQUEST_LIMITS.bodyMemoryBytesMax,
      REQUEST_LIMITS.bodyMemoryBytesMax + 1,
      9 * MIB,
    ]) {
      const body = bytesOf(size);
      const half = Math.ceil(size / 2);
      const wire = await s.send(way, size, body.subarray(0, half));
      if (size > 1) await s.holds(half);
      const isLarge = half > REQUEST_LIMITS.bodyMemoryBytesMax;
      t.equal(s.files().length, isLarge ? 1 : 0, `${way} ${size}`);
      await wire.write(body.subarray(half));
      const answer = await wire.until(/\r\n\r\n\w{64}$/);
      t.ok(answer.endsWith(createHash('sha256').update(body).digest('hex')), `${way} ${size} is whole`);
      wire.close();
      await s.holds(0);
      t.same(s.files(), []);
    }
});

t.test('what a body takes counts until it is answered: an execution holds it as well', async t => {
  const s = await receiver(t);
  for (const way of WAYS) {
    const { promise, resolve } = Promise.withResolvers<void>();
    s.hold = promise;
    const wire = await s.send(way, 2 * MIB, bytesOf(2 * MIB));
    await s.holds(2 * MIB);
    const left = await s.send(way, MIB, bytesOf(MIB));
    await s.holds(3 * MIB);
    // The file is gone as soon as the body is in memory.
    while (s.files().length > 0) await nextTurn();
    left.close();
    resolve();
    await wire.until(/200 OK/);
    await s.holds(0);
  }
});

t.test('the file of a body goes with it, however it ends', async t => {
  const s = await receiver(t);
  for (const way of WAYS) {
    const gone = await s.send(way, 4 * MIB, bytesOf(3 * MIB));
    await s.holds(3 * MIB);
    t.equal(s.files().length, 1);
    gone.close();
    await s.holds(0);
    while (s.files().length > 0) await nextTurn();

    const chunk = `${(MIB).toString(16)}\r\n${bytesOf(MIB).toString()}\r\n`;
    const large = new Wire(s.base);
    t.teardown(() => large.close());
    await large.write(`POST ${way} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`);
    for (let k = 0; k < 11; k++) await large.write(chunk).catch(() => {});
    t.match(await large.until(/body_too_large/), /HTTP\/1.1 413 /, `${way} in chunks`);
    while (s.files().length > 0) await nextTurn();
    await s.holds(0);
  }
  const announced = await s.send('/t/x', BODY_MAX + 1, bytesOf(1));
  t.match(await announced.until(/body_too_large/), /HTTP\/1.1 413 .*http.max_body \(10485760 bytes\)/s);
});

t.test('folders of bodies of processes that have ended are removed at start', t => {
  const above = t.testdir();
  const folder = (pid: number): string => {
    const made = path.join(above, `run-${os.hostname().replaceAll(/[^\w.]/g, '_')}-${pid}-abcdef`);
    fs.mkdirSync(made);
    fs.writeFileSync(path.join(made, 'body-1'), 'left behind');
    return made;
  };
  const [ended, alive] = [folder(2 ** 22 + 1), folder(1)];
  const own = ownDirectory(above);
  t.notOk(fs.existsSync(ended));
  t.ok(fs.existsSync(alive), 'another process works there');
  t.ok(fs.existsSync(own));
  removeOwnDirectory(ownDirectory(above));
  t.ok(fs.existsSync(own), 'one of this process that is in use stays');
  removeOwnDirectory(own);
  t.notOk(fs.existsSync(own));
  t.end();
});

t.test('one address takes its share of what a host receives, a /64 of IPv6 counting as one', async t => {
  const s = await receiver(t, { bytesMax: 8 * MIB, bytesPerAddressMax: 3 * MIB });
  for (const way of WAYS) {
    const part = bytesOf(MIB + MIB / 2);
    const open: Wire[] = [];
    const start = async (address: string): Promise<Wire> => {
      const wire = await s.send(way, 3 * MIB, part, address);
      open.push(wire);
      return wire;
    };
    for (const address of ['2001:db8:1:2::1', '2001:db8:1:2:ffff::2']) await start(address);
    await s.holds(3 * MIB);
    const third = await start('2001:db8:1:2:3::3');
    t.match(
      await third.until(/http.max_receiving_per_address"/),
      /HTTP\/1.1 503 .*Retry-After: \d+\r\n.*3145728 bytes are received from 2001:db8:1:2::\/64 already/s,
    );
    for (const address of ['2001:db8:1:3::1', '203.0.113.7', '203.0.113.8']) await start(address);
    await s.holds(7.5 * MIB);
    const over = await start('203.0.113.9');
    t.match(await over.until(/"limit":"http.max_receiving"/), /HTTP\/1.1 503 .*Retry-After/s);
    t.ok(s.intake.bytes <= 8 * MIB);
    const small = await s.send(way, 8192, bytesOf(8192), '203.0.113.9');
    t.match(await small.until(/\r\n\r\n\w{64}$/), /200 OK/, 'a small body that comes at once needs no room');
    for (const wire of open) wire.close();
    await s.holds(0);
    while (s.files().length > 0) await nextTurn();
    const again = await s.send(way, 2 * MIB, bytesOf(2 * MIB), '203.0.113.9');
    t.match(await again.until(/\r\n\r\n\w{64}$/), /200 OK/, 'what was given back is there again');
    await s.holds(0);
  }
});

t.test('a body must be over in time, and come at a rate, also when none of it comes', async t => {
  const slow = await receiver(t, { bodyMsMax: 1 });
  const trickling = await receiver(t, { graceMs: 1, bytesPerSecondMin: 100_000_000 });
  await Promise.all(
    [...WAYS].flatMap(way =>
      [0, 1000, 2 * MIB].flatMap(sent => [
        slow
          .send(way, 4 * MIB, bytesOf(sent))
          .then(wire => wire.until(/http.body_timeout/))
          .then(text => t.match(text, /HTTP\/1.1 408 .*within 1 ms/s)),
        trickling
          .send(way, 4 * MIB, bytesOf(sent))
          .then(wire => wire.until(/http.min_body_rate/))
          .then(text => t.match(text, /HTTP\/1.1 408 .*at least 100000000 bytes a second/s)),
      ]),
    ),
  );
  for (const s of [slow, trickling]) {
    await s.holds(0);
    while (s.files().length > 0) await nextTurn();
  }
});

t.test('a body that no file can be made for is refused', async t => {
  const s = await receiver(t);
  fs.rmSync(s.intake.limits.directory, { recursive: true });
  const intake = s.intake.open(() => '203.0.113.1');
  t.teardown(() => intake.release());
  const source = {
    pump: async (take: (chunk: Uint8Array) => Promise<void> | null) => void (await take(bytesOf(2 * MIB))),
    fail: () => {},
  };
  await t.rejects(collectBody(source, intake, { name: 'x', bytes: BODY_MAX }), { code: 'ENOENT' });
});
