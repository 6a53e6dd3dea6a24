import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { readGraphSchema } from '../../src/graph/graph-schema.ts';
import { GraphStore } from '../../src/graph/graph-store.ts';
import { startGraphStore, tuple } from '../support/graph.ts';
import { storeWay } from '../support/store-way.ts';

/** A store whose packets get lost without a word, as behind a firewall that drops. */

async function world(t: { teardown(fn: () => unknown): void }) {
  const { spicedb, store: direct } = await startGraphStore(t);
  await direct.writeSchema(readGraphSchema().text);
  await direct.write([{ operation: 'touch', tuple: tuple('faculty:f#dean@user:u') }]);
  const way = await storeWay(spicedb.endpoint.replace('unix:', ''));
  const store = new GraphStore({ endpoint: `127.0.0.1:${way.port}`, token: 'any', tls: false });
  t.teardown(() => {
    way.mend();
    store.close();
    way.close();
  });
  const check = (): Promise<unknown> =>
    store
      .checkBulk(
        [{ resourceType: 'faculty', resourceId: 'f', permission: 'admin', subjectType: 'user', subjectId: 'u' }],
        'latest',
      )
      .then(
        ([answer]) => answer,
        (error: Error) => error.message,
      );
  const write = (): Promise<string> =>
    store.write([{ operation: 'touch', tuple: tuple('faculty:f#staff@user:u') }]).then(
      () => 'written',
      (error: Error) => error.message,
    );
  return { way, check, write };
}

t.test('after a question without an answer the next one goes over a new connection', async t => {
  const { check, way } = await world(t);
  t.equal(await check(), true);
  way.freezeOpen();
  t.match(await check(), /deadline/i, 'the time limit of a check');
  t.equal(await check(), true, 'the old connection is still silent');
});

t.test('a write to a store that does not answer at all ends before its time limit, and says so', async t => {
  const { check, way, write } = await world(t);
  t.equal(await write(), 'written');
  t.equal(await check(), true);
  way.freeze();
  const began = performance.now();
  t.equal(await write(), 'the graph store does not answer');
  t.ok(performance.now() - began < 9000, 'its limit is ten seconds');
  way.mend();
  for (const end = performance.now() + 20_000; (await write()) !== 'written'; )
    if (performance.now() > end) throw new Error('it does not come back');
});

t.test('a write that is slow goes on while the store answers others', async t => {
  const { check, way, write } = await world(t);
  t.equal(await check(), true);
  t.equal(await write(), 'written');
  way.freezeOpen(1);
  const slow = write();
  await sleep(4000);
  way.mend();
  t.equal(await slow, 'written');
});
