/** Expressions for policies from a seed. */
export type Random = { below(n: number): number; pick<T>(list: readonly T[]): T };

/** @param next a number from 0 to below 1 */
export function randomFrom(next: () => number): Random {
  const below = (n: number): number => Math.floor(next() * n);
  return {
    below,
    pick<T>(list: readonly T[]): T {
      const found = list[below(list.length)];
      if (found === undefined) throw new Error('nothing to pick from');
      return found;
    },
  };
}

const TEXTS = [
  '"ru"',
  "'g1'",
  '"😀"',
  '"\\u00e9"',
  'r"\\n"',
  '"""a\nb"""',
  '"\\x41"',
  '"a)b("',
  '""',
  '"ИВТ-21"',
  '"__proto__"',
];
const NUMBERS = [
  '0',
  '1',
  '-1',
  '42',
  '9223372036854775807',
  '9223372036854775808',
  '-9223372036854775808',
  '0x10',
  '007',
];
const ODD = [
  '1u',
  '1.5',
  '1e21',
  '1e400',
  'b"a"',
  'null',
  '{}',
  '{"a": 1, "a": 2}',
  '{1: 2}',
  'int',
  'cel',
  'google',
  '_',
  'x',
  '.user',
];
const FIELDS = ['id', 'external_id', 'groups', 'roles', 'locale', 'locle', 'constructor', '__proto__', 'kind'];
const BINARY = ['==', '!=', '<', '<=', '>', '>=', '&&', '||', '+', '-', '*', '/', '%', 'in'];
const CALLS = [
  'size',
  'string',
  'int',
  'bool',
  'dyn',
  'type',
  'uint',
  'double',
  'bytes',
  'has',
  'has_role',
  'has_rule',
  'timestamp',
  'duration',
];
const METHODS = ['all', 'exists', 'exists_one', 'map', 'filter'];

/** Any expression, of any type or none. */
export function anyExpression(random: Random, depth = 4): string {
  const sub = (): string => anyExpression(random, depth - 1);
  if (depth <= 0)
    return random.pick([
      random.pick(TEXTS),
      random.pick(NUMBERS),
      random.pick(ODD),
      'true',
      'user',
      'principal.kind',
      `user.${random.pick(FIELDS)}`,
    ]);
  switch (random.below(14)) {
    case 0:
    case 1:
    case 2:
      return `${sub()} ${random.pick(BINARY)} ${sub()}`;
    case 3:
      return `(${sub()})`;
    case 4:
      return `${random.pick(['!', '-', '!!', '--', '-!'])}${sub()}`;
    case 5:
      return `${sub()} ? ${sub()} : ${sub()}`;
    case 6:
      return `[${Array.from({ length: random.below(4) }, sub).join(', ')}]`;
    case 7:
      return `${random.pick(CALLS)}(${Array.from({ length: random.below(3) }, sub).join(', ')})`;
    case 8:
      return `${sub()}.${random.pick(METHODS)}(${random.pick(['x', 'y', 'user', '_', '1'])}, ${sub()})`;
    case 9:
      return `${sub()}.${random.pick([...FIELDS, 'size()', 'startsWith("a")', 'contains(user.locale)'])}`;
    case 10:
      return `${sub()}[${sub()}]`;
    case 11:
      return Array.from({ length: 2 + random.below(60) }, () =>
        random.pick(['true', 'user.id == 1', '"a" == "a"']),
      ).join(random.pick([' && ', ' || ', ' == ', ' + ']));
    case 12:
      return `check(${sub()}, ${sub()}, ${sub()})`;
    default:
      return `${sub()} // ${random.pick(['"', ')', 'x'])}\n`;
  }
}

/** The same, cut or with a character changed: what a person sends by mistake, or on purpose. */
export function brokenExpression(random: Random): string {
  const text = anyExpression(random);
  const at = random.below(text.length + 1);
  const put = random.pick(['', '(', ')', '"', '\\', '[', '}', '?', '\u0000', '\u{1F600}', '//', '"""', '.', ',']);
  return text.slice(0, at) + put + text.slice(at + random.below(3));
}

/** Boolean expressions over what policies offer; most of them compile. */
export function offeredExpression(random: Random, depth = 4, names: readonly string[] = []): string {
  const text = (): string => random.pick([...TEXTS, 'user.locale', 'user.external_id', 'principal.kind', ...names]);
  const number = (d: number): string =>
    d <= 0
      ? random.pick(['0', '1', '7', '-3', 'user.id', '9223372036854775807', 'user.groups.size()', `size(${text()})`])
      : `(${number(d - 1)} ${random.pick(['+', '-', '*'])} ${number(d - 1)})`;
  const list = (): string => random.pick(['user.groups', 'user.roles', `[${text()}, ${text()}]`]);
  const sub = (): string => offeredExpression(random, depth - 1, names);
  if (depth <= 0)
    return random.pick(['true', 'false', `${text()} == ${text()}`, `${text()} in ${list()}`, 'user.groups[5] == "x"']);
  switch (random.below(10)) {
    case 0:
    case 1:
      return `(${sub()} && ${sub()})`;
    case 2:
    case 3:
      return `(${sub()} || ${sub()})`;
    case 4:
      return `!(${sub()})`;
    case 5:
      return `(${sub()} ? ${sub()} : ${sub()})`;
    case 6:
      return `${number(1)} ${random.pick(['<', '<=', '>', '>=', '==', '!='])} ${number(2)} / ${random.pick(['2', '3'])}`;
    case 7: {
      if (names.length > 1) return sub();
      const name = `v${names.length}`;
      return `${list()}.${random.pick(['all', 'exists', 'exists_one'])}(${name}, ${offeredExpression(random, Math.min(1, depth - 1), [...names, name])})`;
    }
    case 8:
      return `${text()}.${random.pick(['startsWith', 'endsWith', 'contains'])}(${text()})`;
    default:
      return `${list()}.${random.pick(['filter(f, f == "g1")', 'map(m, m.size())'])}.size() ${random.pick(['==', '<', '>='])} ${number(1)}`;
  }
}
