import { randomInt } from 'node:crypto';
import t from 'tap';
import { ServiceError } from '../../src/base/errors.ts';
import { jsonElements } from '../../src/university/json-elements.ts';
import { random } from '../support/graph.ts';

const seed = Number(process.env.JSON_SEED ?? randomInt(2 ** 31));

async function* cut(text: string, sizes: () => number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) {
    const to = at + sizes();
    yield bytes.subarray(at, to);
    at = to;
  }
}

async function all(chunks: AsyncIterable<Uint8Array>): Promise<unknown[]> {
  const out: unknown[] = [];
  for await (const element of jsonElements(chunks, 10_000)) out.push(element);
  return out;
}

t.test('the elements of an array are those the platform’s parser finds, wherever it is cut', async t => {
  t.comment(`seed ${seed}, JSON_SEED=${seed} repeats it`);
  const rnd = random(seed);
  const at = <T>(list: readonly T[]): T => list[Math.floor(rnd() * list.length)]!;
  const value = (depth: number): unknown => {
    const kind = Math.floor(rnd() * (depth > 3 ? 5 : 7));
    if (kind === 5) return Array.from({ length: Math.floor(rnd() * 4) }, () => value(depth + 1));
    if (kind === 6)
      return Object.fromEntries(
        Array.from({ length: Math.floor(rnd() * 4) }, (_, k) => [
          at(['a', ']', '"', '__proto__']) + k,
          value(depth + 1),
        ]),
      );
    return at([null, true, -1.5e3, '', 'я', '\\', '"', '[{,]}', '\u2028', '😀', 'a\\"b', '\n\t']);
  };
  for (let round = 0; round < 300; round++) {
    const list = Array.from({ length: Math.floor(rnd() * 6) }, () => value(0));
    const text = JSON.stringify(list, null, at([0, 1, 2]));
    const spaced = at(['', ' ', '\r\n\t']) + text + at(['', '\n']);
    t.same(await all(cut(spaced, () => 1 + Math.floor(rnd() * 7))), list, `round ${round}`);
    // One byte less, or a wrong one: what the parser refuses is refused.
    const bytes = Buffer.from(text);
    const broken = bytes.subarray(0, Math.floor(rnd() * bytes.length));
    await t.rejects(all(cut(broken.toString('latin1'), () => 3)), { name: 'ServiceError' }, `round ${round}, cut off`);
    const characters = [...text];
    characters[Math.floor(rnd() * characters.length)] = at(['x', ',', ']', '}', '"', '[']);
    const changed = characters.join('');
    let should: unknown;
    try {
      should = JSON.parse(changed);
    } catch {
      should = undefined;
    }
    if (Array.isArray(should)) t.same(await all(cut(changed, () => 5)), should);
    else await t.rejects(all(cut(changed, () => 5)), { name: 'ServiceError' }, `round ${round}, changed`);
  }
});

t.test('a byte order mark before the array is skipped, wherever it is cut, and nowhere else', async t => {
  for (const size of [1, 2, 3, 100]) {
    t.same(await all(cut('\uFEFF[1, {"a": 2}]', () => size)), [1, { a: 2 }]);
    t.same(await all(cut('\uFEFF \n[]', () => size)), []);
    for (const wrong of ['\uFEFF\uFEFF[]', ' \uFEFF[]', '\uFEFF', '\uFEFF{}', '[]\uFEFF', '[\uFEFF1]'])
      await t.rejects(all(cut(wrong, () => size)), { name: 'ServiceError' }, JSON.stringify(wrong));
  }
  async function* torn(): AsyncGenerator<Uint8Array> {
    yield Buffer.from([0xef, 0xbb, 0x5b, 0x5d]);
  }
  await t.rejects(all(torn()), { name: 'ServiceError' });
});

t.test('a body that only begins like a JSON literal is refused', async t => {
  const codeOf = async (text: string): Promise<unknown> => {
    try {
      for await (const _ of jsonElements(
        cut(text, () => text.length),
        1000,
      ))
        t.fail('there is no element');
    } catch (error) {
      return error instanceof ServiceError ? error.code : error;
    }
    return null;
  };
  for (const text of ['not json', 'nothing', 'truth', 'fine', '-', '- 1', '?'])
    t.equal(await codeOf(text), 'malformed_request', text);
  for (const text of ['null', 'true', 'false', '-1', '7', '{}', '"x"'])
    t.equal(await codeOf(text), 'validation_failed', text);
});
