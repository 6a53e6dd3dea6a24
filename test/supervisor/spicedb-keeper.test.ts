import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import t from 'tap';
import { readGraphSchema } from '../../src/graph/graph-schema.ts';
import { GraphStore } from '../../src/graph/graph-store.ts';
import { endpointFile, SpicedbKeeper } from '../../src/supervisor/stores/spicedb-keeper.ts';
import { tuple } from '../support/graph.ts';
import { signalDescendant } from '../support/signals.ts';
import { until } from '../support/until.ts';

/** Process ids of the stores below a directory. */
function storesBelow(directory: string): number[] {
  return fs
    .readdirSync('/proc')
    .filter(p => /^\d+$/.test(p))
    .filter(p => {
      try {
        return fs.readFileSync(`/proc/${p}/cmdline`, 'latin1').includes(`spicedb\0${directory}`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

const answers = (store: GraphStore) =>
  store.readSchema().then(
    () => true,
    () => false,
  );

t.test(
  'an embedded store that dies is started again, one that has grown is replaced, and none is left running',
  async t => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'k-'));
    const endpoints: string[] = [];
    const keeper = new SpicedbKeeper({
      directory,
      recycleBytes: 1,
      progress: () => {},
      started: endpoint => void endpoints.push(endpoint),
    });
    t.teardown(async () => {
      await keeper.stop();
      fs.rmSync(directory, { recursive: true, force: true });
    });
    keeper.start();
    t.ok(await until(() => endpoints.length === 1));
    t.equal(keeper.endpoint, endpoints[0]);
    t.equal(fs.readFileSync(endpointFile(directory), 'utf8').trim(), endpoints[0]);
    t.equal(fs.statSync(endpointFile(directory)).mode & 0o777, 0o600);

    t.ok(await until(() => storesBelow(directory).length === 1));
    signalDescendant(storesBelow(directory)[0], 'SIGKILL');
    t.ok(await until(() => endpoints.length === 2), 'it is started again');
    t.not(endpoints[1], endpoints[0], 'at an address of its own, so that no client takes it for the one before');

    const first = new GraphStore({ endpoint: endpoints[1] ?? '', token: 'x', tls: false });
    t.teardown(() => first.close());
    await first.writeSchema(readGraphSchema().text);
    keeper.inUse(endpoints[1] ?? '');
    // Revisions are never let go, so it grows with every write, whatever is in it.
    const updates = (operation: 'touch' | 'delete') =>
      Array.from({ length: 1000 }, (_, k) => ({ operation, tuple: tuple(`study_group:g${k}#member@user:u${k}`) }));
    for (let n = 0; endpoints.length === 2 && n < 400; n++)
      await first.write(updates(n % 2 === 0 ? 'touch' : 'delete'));
    t.ok(await until(() => endpoints.length === 3), 'one that has doubled is replaced');
    t.ok(await answers(first), 'the old one answers until the new one is in use');
    t.equal(storesBelow(directory).length, 2);
    keeper.inUse(endpoints[1] ?? '');
    t.ok(await answers(first), 'only the newest counts');
    keeper.inUse(endpoints[2] ?? '');
    t.ok(await until(() => storesBelow(directory).length === 1), 'then it ends');

    await keeper.handOn();
    signalDescendant(storesBelow(directory)[0], 'SIGKILL');
    t.ok(await until(() => storesBelow(directory).length === 0));
    keeper.goOn();
    t.ok(
      await until(() => endpoints.length === 4),
      'so is one that has died while another program was to take it over',
    );

    await keeper.stop();
    t.ok(await until(() => storesBelow(directory).length === 0));
    t.notOk(fs.existsSync(endpointFile(directory)));
    t.same(fs.readdirSync(directory), [], 'nothing is left of them');
  },
);
