import t from 'tap';
import { DrawnReader, DrawnWriter } from '../../src/abi/drawn.ts';

/** What a recorded execution drew, as a replay draws it (docs/plugins.md "Recordings"). */

t.test('a replay draws what was drawn, and then goes on', t => {
  const writer = new DrawnWriter();
  writer.clock(0, 1000n);
  writer.random(Uint8Array.of(1, 2, 3));
  writer.clock(1, -5n);
  writer.random(Uint8Array.of(4));
  writer.clock(0, 1007n);
  const reader = new DrawnReader(writer.take());
  t.ok(reader.hasClock());
  t.same([reader.clock(1, 50n), reader.clock(0, 70n), reader.clock(0, 80n)], [-5n, 1000n, 1007n]);
  t.notOk(reader.hasClock());
  const slow = 'a clock goes on at the speed of the one here, and has run for no less than the replay has';
  t.same([reader.clock(0, 90n), reader.clock(0, 95n)], [1020n, 1025n], slow);
  t.equal(reader.clock(1, 60n), 5n);
  const taken = new Uint8Array(3);
  const two = taken.subarray(0, 2);
  t.ok(reader.random(two));
  t.same([...two], [1, 2], 'in other lengths, too');
  t.notOk(reader.random(taken), 'there are only two left');
  t.ok(reader.random(two));
  t.same([...two], [3, 4]);
  const quick = new DrawnReader(writer.take());
  t.same([quick.clock(0, 70n), quick.clock(0, 72n), quick.clock(0, 75n)], [1000n, 1007n, 1010n], 'what went on stays');
  t.end();
});

t.test('draws are kept up to a limit, without a gap; bytes that are none are read as far as they go', t => {
  const writer = new DrawnWriter();
  writer.clock(0, 1n);
  writer.random(new Uint8Array(256 * 1024));
  writer.clock(0, 2n);
  const kept = writer.take();
  t.equal(kept.length, 9, 'nothing behind what was too much');
  t.equal(new DrawnReader(new DrawnWriter().take()).clock(0, 7n), 7n);
  for (const wrong of [[9], [0, 1], [2, 255, 255, 255, 255], [2, 3, 0, 0, 0, 1]]) {
    const reader = new DrawnReader(Uint8Array.from([...kept, ...wrong]));
    t.equal(reader.clock(0, 5n), 1n);
    t.notOk(reader.random(new Uint8Array(2)));
  }
  t.end();
});
