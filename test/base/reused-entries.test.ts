import v8 from 'node:v8';
import t from 'tap';
import { ReusedEntries } from '../../src/base/reused-entries.ts';

type Entry = { key: string; uses: number };
const makeEntries = (): ReusedEntries<Entry> => new ReusedEntries(entry => entry.uses > 0);

t.test('an entry out of use is found again', async t => {
  const entries = makeEntries();
  const entry = { key: 'a', uses: 0 };
  entries.add('a', entry);
  t.equal(entries.get('a'), entry);
  t.equal(entries.get('b'), undefined);
  t.same([...entries.inUse()], []);
  entry.uses = 1;
  t.same([...entries.inUse()], [entry]);
});

t.test('entries out of use are removed when there are many, and those in use never', async t => {
  const entries = makeEntries();
  const used = Array.from({ length: 50 }, (_, k) => ({ key: `used${k}`, uses: 1 }));
  for (const entry of used) entries.add(entry.key, entry);
  for (let k = 0; k < 10_000; k++) entries.add(`unused${k}`, { key: '', uses: 0 });
  let kept = 0;
  for (let k = 0; k < 10_000; k++) if (entries.get(`unused${k}`) !== undefined) kept++;
  t.ok(kept <= 100, `${kept} of 10,000 that are out of use are still there`);
  t.same([...entries.inUse()], used);
  t.ok(used.every(entry => entries.get(entry.key) === entry));
});

/** Lets several quick collections pass, so that what is in use now counts as old. */
let garbage: unknown[] = [];
function growOld(): void {
  for (let k = 0; k < 1_000_000; k++) {
    garbage.push({ k });
    if (garbage.length > 1000) garbage = [];
  }
}

/** The most that old objects grew by while something was done many times; a full collection in between takes some away. */
function growthOf(once: (k: number) => void): number {
  const oldBytes = (): number =>
    v8.getHeapSpaceStatistics().find(s => s.space_name === 'old_space')?.space_used_size ?? 0;
  growOld();
  const before = oldBytes();
  let most = 0;
  for (let k = 0; k < 200_000; k++) {
    once(k);
    if (k % 1000 === 0) most = Math.max(most, oldBytes() - before);
  }
  return most;
}

t.test('what comes and goes leaves nothing behind that only a full collection removes', async t => {
  const payload = (): { numbers: number[] } => ({ numbers: [1, 2, 3, 4, 5, 6, 7, 8] });
  const plain = new Map<string, object>([['a', payload()]]);
  const ofMap = growthOf(() => {
    plain.set('a', payload());
    plain.delete('a');
  });
  const entries = new ReusedEntries<{ holds: object | null }>(entry => entry.holds !== null);
  entries.add('a', { holds: null });
  const reused = growthOf(() => {
    const entry = entries.get('a')!;
    entry.holds = payload();
    entry.holds = null;
  });
  t.comment(`a Map left ${ofMap} bytes, the entries ${reused}`);
  t.ok(ofMap > 4 * 2 ** 20, `a Map leaves ${ofMap} bytes: the reason for these entries`);
  t.ok(reused < 2 ** 20, `the entries leave ${reused}`);
});
