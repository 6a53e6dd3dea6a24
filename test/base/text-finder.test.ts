import t from 'tap';
import { TextFinder } from '../../src/base/text-finder.ts';

/** Many texts are found in one pass (docs/plugins.md "Recordings"). */

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

/** A number from 0 to below n. */
function makeRandom(start: number): (n: number) => number {
  let state = start >>> 0;
  return n => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

/** Which characters of a text belong to any of the others, looked for one by one. */
function coveredBy(texts: readonly string[], text: string): boolean[] {
  const covered = Array<boolean>(text.length).fill(false);
  for (const wanted of texts)
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1))
      covered.fill(true, at, at + wanted.length);
  return covered;
}

t.test(`what is found is what a search for each text finds (seed ${seed})`, t => {
  const random = makeRandom(seed);
  const word = (length: number): string =>
    Array.from({ length: 1 + random(length) }, () => 'ab\u0418\ud83d'[random(4)] ?? '').join('');
  for (let round = 0; round < 300; round++) {
    const texts = Array.from({ length: 1 + random(6) }, () => word(5));
    const text = word(40);
    const covered = Array<boolean>(text.length).fill(false);
    const finder = new TextFinder(texts);
    for (const { from, to } of finder.find(text)) covered.fill(true, from, to);
    const wanted = coveredBy(texts, text);
    if (String(covered) !== String(wanted)) t.same({ texts, text, covered }, { texts, text, covered: wanted });
    if (finder.has(text) !== wanted.includes(true)) t.fail(`has: ${JSON.stringify({ texts, text })}`);
  }
  t.end();
});

t.test('of a long text the beginning is looked for, and as much is found as it is long', t => {
  const long = 'x'.repeat(60) + 'y'.repeat(100_000);
  const found = new TextFinder([long, `${long}z`]).find(`before ${long}z after`);
  t.same(found, [{ from: 7, to: 7 + long.length + 1, index: 0 }]);
  t.end();
});

t.test('parts next to each other are two, and parts that overlap are one', t => {
  const finder = new TextFinder(['abc', 'cde', 'fg']);
  t.same(finder.find('abcde fgfg'), [
    { from: 0, to: 5, index: 0 },
    { from: 6, to: 8, index: 2 },
    { from: 8, to: 10, index: 2 },
  ]);
  t.same(new TextFinder([]).find('abc'), []);
  t.end();
});
