import { Readable } from 'node:stream';
import t from 'tap';
import { startServer } from '../../src/http/server.ts';
import { testIntake } from '../support/intake.ts';
import { startTestService, TOKEN } from '../support/service.ts';
import { okPlugin, watPlugin } from '../support/wat.ts';
import { Wire } from '../support/wire.ts';

t.test(
  'an answer without content has no length, and the connection goes on behind it (RFC 9110 section 8.6)',
  async t => {
    const s = await startTestService();
    t.teardown(() => s.stop());
    await s.install(okPlugin('gone'));
    await s.install(watPlugin({ id: 'silent', handle: '(i32.const 0)' }));
    for (const head of [
      `DELETE /api/admin/plugins/gone HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`,
      'GET /api/triggers/http/silent/run HTTP/1.1\r\nHost: x\r\n\r\n',
    ]) {
      const wire = new Wire(s.base);
      await wire.write(head);
      const answer = await wire.until(/\r\n\r\n/);
      t.match(answer, /^HTTP\/1.1 204 /);
      t.notMatch(answer, /content-length/i);
      await wire.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
      t.match(await wire.until(/"alive"/), /\r\n\r\nHTTP\/1.1 200 OK/);
      wire.close();
    }
  },
);

t.test('an answer to HEAD tells the length, and the connection goes on behind it (RFC 9110 section 9.3.2)', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  for (const path of ['/healthz', '/api/openapi.json', '/nothing', '/api/triggers/http/nothing/run']) {
    const wire = new Wire(s.base);
    await wire.write(`HEAD ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    const answer = await wire.until(/\r\n\r\n/);
    t.match(answer, /^HTTP\/1.1 (200|404|405) /);
    const lengths = [...answer.matchAll(/content-length: (\d+)\r\n/gi)];
    t.equal(lengths.length, 1, `${path} has one length`);
    t.ok(Number(lengths[0]?.[1]) > 10);
    await wire.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    t.match(await wire.until(/"alive"/), /\r\n\r\nHTTP\/1.1 200 OK/, `${path}: the connection is used again`);
    wire.close();
  }
});

t.test('an answer without a length that cannot go on is cut, so that no client takes a part for the whole', async t => {
  const errors: unknown[] = [];
  async function* lines(fails: boolean): AsyncGenerator<Buffer> {
    yield Buffer.from('id\r\n');
    if (fails) throw new Error('the database is gone');
    yield Buffer.from('1\r\n');
  }
  const server = await startServer('127.0.0.1', 0, {
    triggerPrefix: '/t/',
    clientAddress: peer => peer,
    intake: testIntake(t),
    handleTrigger: () => undefined,
    handleRoute: x =>
      x.reply({
        status: 200,
        headers: [],
        body: { endless: true, open: () => Promise.resolve(Readable.from(lines(x.path === '/fails'))) },
      }),
    onUnknownError: error => errors.push(error),
  });
  t.teardown(() => server.close());
  const of = (path: string): Promise<string> =>
    fetch(`http://127.0.0.1:${server.port}${path}`).then(answer => answer.text());
  t.equal(await of('/whole'), 'id\r\n1\r\n');
  await t.rejects(of('/fails'), 'a client sees that it is not whole');
  t.match(errors, [{ message: 'the database is gone' }], 'and the log has why');
  t.equal(await of('/whole'), 'id\r\n1\r\n');
});
