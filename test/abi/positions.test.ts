import t from 'tap';
import { withCustomSection } from '../../src/abi/custom-section.ts';
import { leb } from '../../src/abi/leb.ts';
import {
  decodePositions,
  encodePositions,
  POSITIONS_BYTES_MAX,
  POSITIONS_SECTION,
  type Positions,
  placesAt,
} from '../../src/abi/positions.ts';
import { readModule } from '../../src/plugins/gate/module.ts';
import { inspectModule } from '../../src/plugins/inspect.ts';
import { startTestService } from '../support/service.ts';
import { watPlugin } from '../support/wat.ts';

/** Lines of an author's sources for the instructions of a module (docs/abi.md "Positions"). */

const POSITIONS: Positions = {
  places: [
    { file: 'main.c', line: 10, name: null, caller: -1 },
    { file: 'src/ü.c', line: 3, name: 'divide', caller: 0 },
    { file: 'main.c', line: 200_000, name: null, caller: -1 },
  ],
  addresses: [5, 9, 300, 70_000],
  placeOf: [0, 1, -1, 2],
};

t.test('positions are written and read, and found by the address of an instruction', t => {
  const read = decodePositions(encodePositions(POSITIONS));
  t.same(read, POSITIONS);
  if (read === null) throw new Error('not read');
  const linesAt = (address: number): string[] =>
    placesAt(read, address).map(p => `${p.name ?? '-'} ${p.file}:${p.line}`);
  t.same(linesAt(4), [], 'before the first row');
  t.same(linesAt(5), ['- main.c:10']);
  t.same(linesAt(299), ['divide src/ü.c:3', '- main.c:10'], 'an inlined function and where it was inlined');
  t.same(linesAt(300), [], 'a row without a place');
  t.same(linesAt(1e9), ['- main.c:200000']);
  t.equal(decodePositions(Uint8Array.of(2, 1, 2, 3)), null, 'a newer version is ignored');
  t.same(decodePositions(Uint8Array.of(1, 0, 0, 0)), { places: [], addresses: [], placeOf: [] });
  t.end();
});

t.test('names of generic functions are cut until a gate takes them', t => {
  const name = `core::iter::adapters::${'map::Map<'.repeat(600)}😀`;
  const [place] =
    decodePositions(
      encodePositions({ places: [{ file: 'src/lib.rs', line: 1, name, caller: -1 }], addresses: [5], placeOf: [0] }),
    )?.places ?? [];
  t.match(place?.name, /^core::iter::adapters::map::Map<.*\.\.\.$/);
  t.ok((place?.name?.length ?? 0) <= 203);
  t.end();
});

const REFUSED: Array<[what: string, bytes: number[], says: RegExp]> = [
  ['nothing', [], /ends in the middle/],
  ['a list that is cut short', [1, 9, 1, 97], /ends before the last item/],
  ['a name with a line feed', [1, 1, 1, 10, 0, 0], /control characters/],
  ['a name that is not UTF-8', [1, 1, 1, 255, 0, 0], /./],
  ['a place with an unknown file', [1, 0, 1, 0, 0, 0, 0, 0], /not in the list/],
  ['a place that was inlined at itself', [1, 1, 1, 97, 1, 0, 7, 0, 1, 0], /stands behind it/],
  ['a row with an unknown place', [1, 0, 0, 1, 5, 1], /not in the list/],
  ['two rows at one address', [1, 1, 1, 97, 1, 0, 7, 0, 0, 2, 5, 1, 0, 0], /same address/],
  ['a number of six bytes', [1, 255, 255, 255, 255, 255, 1], /longer than 5 bytes/],
  ['more behind the last row', [1, 0, 0, 0, 0], /follows the last row/],
];

const GOOD = watPlugin({ handle: '(i32.const 0)' });
const refusals = (module: Uint8Array): Array<{ rule: string; message: string }> =>
  inspectModule(module).findings.filter(f => f.level === 'refusal');

t.test('the gate refuses a module with positions that are wrong', t => {
  for (const [what, bytes, says] of REFUSED) {
    t.throws(() => decodePositions(Uint8Array.from(bytes)), { message: says }, what);
    const [refusal] = refusals(withCustomSection(GOOD, POSITIONS_SECTION, Uint8Array.from(bytes)));
    t.match(refusal, { rule: 'malformed', message: /^the section plugin\.positions is wrong: / }, what);
  }
  const section = encodePositions(POSITIONS);
  t.same(refusals(withCustomSection(GOOD, POSITIONS_SECTION, section)), []);
  const twice = withCustomSection(withCustomSection(GOOD, POSITIONS_SECTION, section), POSITIONS_SECTION, section);
  t.match(refusals(twice), [{ rule: 'malformed', message: /several sections plugin\.positions/ }]);
  const large = withCustomSection(GOOD, POSITIONS_SECTION, new Uint8Array(POSITIONS_BYTES_MAX + 1));
  t.match(refusals(large), [{ rule: 'too-many', message: /262145 bytes; at most 262144/ }]);
  t.end();
});

t.test('a damaged section is read or refused, and never more than that', t => {
  const section = encodePositions(POSITIONS);
  for (let at = 0; at < section.length; at++)
    for (const byte of [0, 1, 127, 128, 255]) {
      const damaged = Uint8Array.from(section);
      damaged[at] = byte;
      let read: Positions | null = null;
      try {
        read = decodePositions(damaged);
      } catch {}
      if (read !== null) for (const address of [0, 5, 9, 300, 70_000]) placesAt(read, address);
    }
  t.pass('all of them ended');
  t.end();
});

/** The module with sizes of functions in five bytes, as linkers leave them. */
function withLongSizes(module: Uint8Array): Uint8Array {
  const { bodies, entriesAt, sections } = readModule(module);
  const index = sections.findIndex(x => x.id === 10);
  const [before, code] = [sections[index - 1], sections[index]];
  if (before === undefined || code === undefined) throw new Error('no code');
  const entries = bodies.flatMap(({ bytes, offset }) => [
    ...[0, 7, 14, 21].map(shift => ((bytes >> shift) & 127) | 128),
    ...[0, ...module.subarray(offset, offset + bytes)],
  ]);
  const content = [...module.subarray(code.start, entriesAt.code), ...entries];
  const head = [10, ...leb(content.length)];
  return Uint8Array.from([...module.subarray(0, before.end), ...head, ...content, ...module.subarray(code.end)]);
}

/** A plugin that traps in `$inner` or, without a position of its own, in `$bare`, which lies behind it. */
function placed(id: string, where: 'inner' | 'bare'): Uint8Array {
  // With more than 128 functions a call is longer than the memory.size in its place.
  const many = Array.from({ length: 200 }, (_, k) => `(func $f${k} (result i32) (i32.const ${k}))`).join('\n');
  const module = withLongSizes(
    watPlugin({
      id,
      body: `${many}
      (func $inner (param i32)
        (if (i32.eqz (local.get 0)) (then (drop (memory.size)) (drop (memory.grow (i32.const 0))) (unreachable)))
        (call $bare))
      (func $bare (unreachable))`,
      handle: `(drop (memory.size)) (call $inner (i32.const ${where === 'inner' ? 0 : 1})) (i32.const 0)`,
    }),
  );
  const { bodies, sections } = readModule(module);
  const code = sections.find(x => x.id === 10)?.start ?? 0;
  const [inner, bare, handler] = bodies.slice(-3);
  if (handler === undefined || bare === undefined || inner === undefined) throw new Error('no functions');
  // `unreachable` behind `drop`.
  const trap = module.findIndex((byte, at) => at > inner.offset && byte === 0x00 && module[at - 1] === 0x1a);
  if (trap < 0 || trap > bare.offset) throw new Error('no trap');
  const section = encodePositions({
    places: [
      { file: 'lib.wat', line: 1, name: null, caller: -1 },
      { file: 'lib.wat', line: 2, name: 'checked', caller: 0 },
      { file: 'main.wat', line: 3, name: null, caller: -1 },
    ],
    // A byte too much or too few would be another line.
    addresses: [inner.offset, trap, trap + 1, handler.offset].map(at => at - code),
    placeOf: [0, 1, 0, 2],
  });
  return withCustomSection(module, POSITIONS_SECTION, section);
}

t.test('a trap names the lines of the author, though functions lie elsewhere in the module that runs', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const failureOf = async (where: 'inner' | 'bare'): Promise<string[]> => {
    await s.install(placed(where, where));
    t.equal((await s.trigger(`${where}/run`)).status, 502);
    const { json } = await s.admin('GET', `/plugins/${where}/executions?outcome=trapped&limit=1`);
    const [item] = json.items as Array<{ id: number }>;
    const record = await s.admin('GET', `/plugins/${where}/executions/${item?.id}`);
    return String(record.json.failure).split('\n');
  };
  const inner = await failureOf('inner');
  t.match(inner, [/unreachable/, /^ {4}at checked \(lib\.wat:2\)$/, /\(lib\.wat:1\)$/, /\(main\.wat:3\)$/]);
  t.equal(inner.length, 4);
  const bare = await failureOf('bare');
  t.match(bare, [/unreachable/, /^ {4}at \S+ \(lib\.wat:1\)$/, /^ {4}at \S+ \(main\.wat:3\)$/]);
  t.equal(bare.length, 3, 'a function without positions is left out');
});
