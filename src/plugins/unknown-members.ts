import type { FieldError } from '../base/errors.ts';
import { pointerOf } from '../base/field-errors.ts';
import { didYouMean } from '../base/nearest-name.ts';

/** Names of the members that each part of a manifest may have, by the form of the part's pointer. */
export type KnownMembers = ReadonlyArray<readonly [part: RegExp, names: readonly string[]]>;

/** More than a person reads; a manifest may hold a hundred thousand. */
const NAMED_MAX = 20;

/** A command has none of these: its name is its address, and an administrator decides who may use it. */
const OF_HTTP_TRIGGERS: ReadonlyMap<string, string> = new Map([
  ['access', 'a command suggests no access: an administrator decides by roles and a policy who may use it'],
  ['methods', 'a command has no methods; only HTTP triggers do'],
  ['path', 'a command has no path: its name is the word that users write'],
]);

const isCommand = (part: object): boolean => 'type' in part && part.type === 'messenger';
const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Members of a manifest that the host does not know, such as those of a later version and misspelt ones. They have no
 * effect.
 *
 * @param given the manifest as its author wrote it
 * @param read the same as the host reads it: what the host does not know is missing
 * @returns where each is and what was probably meant, at most twenty
 */
export function unknownMembers(given: unknown, read: unknown, known: KnownMembers): FieldError[] {
  const found: FieldError[] = [];
  const visit = (part: unknown, other: unknown, at: string): void => {
    if (found.length >= NAMED_MAX) return;
    if (Array.isArray(part) && Array.isArray(other))
      for (const [k, one] of part.entries()) visit(one, other[k], `${at}/${k}`);
    if (!isObject(part) || !isObject(other)) return;
    const readMembers = new Map<string, unknown>(Object.entries(other));
    for (const [name, value] of Object.entries(part)) {
      const place = `${at}${pointerOf([name])}`;
      if (readMembers.has(name)) visit(value, readMembers.get(name), place);
      else if (place === '/$schema') continue;
      else if (found.length < NAMED_MAX) found.push({ pointer: place, message: wordsOf(name, other, at, known) });
    }
  };
  visit(given, read, '');
  return found;
}

function wordsOf(name: string, part: object, at: string, known: KnownMembers): string {
  const ofHttp = isCommand(part) ? OF_HTTP_TRIGGERS.get(name) : undefined;
  if (ofHttp !== undefined) return ofHttp;
  const names = known.find(([form]) => form.test(at))?.[1] ?? [];
  return `${JSON.stringify(name.slice(0, 100))} is unknown and has no effect${didYouMean(name, names)}`;
}
