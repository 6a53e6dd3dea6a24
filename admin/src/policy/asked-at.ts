/** Strings as policies have them, comments, names with their members, and every other sign but spaces. */
const TOKENS = /\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*\.?|[^\s]/g;
const CLOSED = /^(["'])(?:[^\\]|\\.)*\1$/s;

/** A call, a list or a pair of brackets around the cursor: what stands in front of it, and the texts in it so far. */
type Around = { name: string; given: string[]; place: number };

/** What stands in front of a place in a policy. */
type Before = {
  /** Where the text in quotes around it begins; null when it is in none. */
  quoted: number | null;
  isComment: boolean;
  /** The innermost brackets. */
  around: Around | undefined;
  /** An attribute of `user` that is compared with what stands here. */
  compared: string;
};

function readBefore(text: string): Before {
  const brackets: Around[] = [];
  const before: Before = { quoted: null, isComment: false, around: undefined, compared: '' };
  let name = '';
  for (const { 0: token, index } of text.matchAll(TOKENS)) {
    const isLast = index + token.length === text.length;
    const around = brackets.at(-1);
    if (token.startsWith('//')) {
      before.isComment = isLast;
      continue;
    }
    if (/^["']/.test(token)) {
      if (CLOSED.test(token)) around?.given.push(token.slice(1, -1));
      else if (isLast) before.quoted = index + 1;
    } else if (token === '(' || token === '[' || token === '{') {
      brackets.push({ name: token === '(' ? name : token, given: [], place: 0 });
    } else if (token === ')' || token === ']' || token === '}') brackets.pop();
    else if (token === ',' && around !== undefined) around.place++;
    if (/^[&|?:)}]/.test(token) || (token === ',' && around?.name !== '[')) before.compared = '';
    before.compared = /^user\.(\w+)$/.exec(token)?.[1] ?? before.compared;
    name = /^[A-Za-z_]/.test(token) ? token : '';
  }
  before.around = brackets.at(-1);
  return before;
}

/** An attribute behind a value that it may hold: `"cs-101" in user.groups`. */
const HELD_IN = /^[^"'\n]*["']\s*in\s+user\.(\w+)/;
/** A list of `user` that is gone through: `user.groups.exists(g, g == "cs-101")`. */
const GONE_THROUGH = /^user\.(\w+)\.(?:exists|exists_one|all|filter|map)$/;
/** The type of the objects whose ids an attribute holds. */
const IDS_OF: Readonly<Record<string, string>> = { external_id: 'user', groups: 'study_group' };

/** What a policy may go on with at a place, between `from` and `to`. */
export type Asked = { from: number; to: number } & (
  | { kind: 'role' | 'permission' | 'attribute' | 'name' }
  /** A type of the graph that has a permission or relation. */
  | { kind: 'type'; permission: string }
  /** The id of an object of a type; `search` is what is written of it. */
  | { kind: 'id'; type: string; search: string }
  | { kind: 'value'; attribute: string }
);

function askedInQuotes(
  { around, compared }: Before,
  after: string,
): ['role'] | ['permission'] | ['type' | 'id' | 'value', string] {
  if (around?.name === 'has_role' || around?.name === 'has_any_role') return ['role'];
  if (around?.name === 'check' || around?.name === 'is_member') {
    const { given, place } = around;
    // `is_member(type, id)` is `check("member", type, id)`.
    const isMember = around.name === 'is_member';
    const argument = isMember ? place + 1 : place;
    if (argument === 0) return ['permission'];
    return argument === 1 ? ['type', isMember ? 'member' : (given[0] ?? '')] : ['id', given[place - 1] ?? ''];
  }
  const attribute = compared || GONE_THROUGH.exec(around?.name ?? '')?.[1] || HELD_IN.exec(after)?.[1] || '';
  if (attribute === 'roles') return ['role'];
  const type = IDS_OF[attribute];
  return type === undefined ? ['value', attribute] : ['id', type];
}

/**
 * What a policy may go on with.
 *
 * @param at place of the cursor, in UTF-16 units
 * @returns null in a comment
 */
export function askedAt(policy: string, at: number): Asked | null {
  const [before, after] = [policy.slice(0, at), policy.slice(at)];
  const read = readBefore(before);
  if (read.isComment) return null;
  if (read.quoted !== null) {
    const from = read.quoted;
    // What stands behind the cursor in the same quotes goes with it.
    const to = at + (/^[^"'\n]*(?=["'])/.exec(after)?.[0].length ?? 0);
    const [kind, of = ''] = askedInQuotes(read, after);
    if (kind === 'type') return { kind, from, to, permission: of };
    if (kind === 'id') return { kind, from, to, type: of, search: before.slice(from) };
    return kind === 'value' ? { kind, from, to, attribute: of } : { kind, from, to };
  }
  const [word = '', member] = /(?:\buser\.(\w*)|\w*)$/.exec(before) ?? [];
  return member === undefined
    ? { kind: 'name', from: at - word.length, to: at }
    : { kind: 'attribute', from: at - member.length, to: at };
}
