import fs from 'node:fs';
import type { FieldError } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Tuple, TupleFilter } from './tuple.ts';

/** One object type of the graph (docs/authorization.md "Relationship graph"). */
export type ObjectType = {
  name: string;
  /** Allowed subject types, by relation. */
  relations: ReadonlyMap<string, readonly string[]>;
  /** Definitions, as written in the schema, by permission. */
  permissions: ReadonlyMap<string, string>;
};

const DEFINITION = /definition (\w+) \{([^}]*)\}/g;
const RELATION = /^\s*relation (\w+): (.+)$/gm;
const PERMISSION = /^\s*permission (\w+) = (.+)$/gm;
/** Types that hold the outbox's own state. */
const HIDDEN = /^outbox_/;

/** The types and relations of `sql/spicedb-schema.zed`, to check a tuple before it is queued. */
export class GraphSchema {
  readonly text: string;
  readonly types: ReadonlyMap<string, ObjectType>;
  readonly #relations: ReadonlySet<string>;

  constructor(text: string) {
    this.text = text;
    const types = new Map<string, ObjectType>();
    for (const [, name = '', body = ''] of text.matchAll(DEFINITION)) {
      if (HIDDEN.test(name)) continue;
      const relations = [...body.matchAll(RELATION)].map(
        ([, relation = '', subjects = '']) => [relation, subjects.split('|').map(s => s.trim())] as const,
      );
      const permissions = [...body.matchAll(PERMISSION)].map(
        ([, permission = '', is = '']) => [permission, is.trim()] as const,
      );
      types.set(name, { name, relations: new Map(relations), permissions: new Map(permissions) });
    }
    this.types = types;
    this.#relations = new Set([...types.values()].flatMap(t => [...t.relations.keys()]));
  }

  /** The definitions shown to people, without the outbox's own types. */
  visibleText(): string {
    const definitions = [...this.text.matchAll(DEFINITION)].filter(([, name = '']) => !HIDDEN.test(name));
    return `${definitions.map(([text]) => text).join('\n\n')}\n`;
  }

  /** The mistakes in a tuple, by field; empty when it may be written. */
  problems(t: Tuple, pointer = ''): FieldError[] {
    const out = [
      ...this.#object(t.resourceType, t.resourceId, `${pointer}/resource`),
      ...this.#object(t.subjectType, t.subjectId, `${pointer}/subject`),
    ];
    const type = this.types.get(t.resourceType);
    if (type === undefined) return out;
    const subjects = type.relations.get(t.relation);
    if (type.relations.size === 0)
      out.push({
        pointer: `${pointer}/resource_type`,
        message: `must not be ${type.name}, which has no relations`,
        code: 'does_not_fit',
      });
    else if (subjects === undefined)
      out.push({
        pointer: `${pointer}/relation`,
        message: `must be ${oneOf(type.relations.keys())} of a ${type.name}`,
        code: 'not_one_of',
      });
    else if (this.types.has(t.subjectType) && !subjects.includes(t.subjectType))
      out.push({
        pointer: `${pointer}/subject_type`,
        message: `must be ${oneOf(subjects)} for the relation ${t.relation} of a ${type.name}`,
        code: 'does_not_fit',
      });
    if (t.subjectRelation !== '')
      out.push({
        pointer: `${pointer}/subject_relation`,
        message: 'must be absent: no relation of the schema takes a subject relation',
        code: 'does_not_fit',
      });
    return out;
  }

  /** The mistakes in a filter: types and relations that do not exist. */
  filterProblems(f: TupleFilter, pointer = ''): FieldError[] {
    const out: FieldError[] = [];
    for (const [value, name] of [
      [f.resourceType, 'resource_type'],
      [f.subjectType, 'subject_type'],
    ] as const)
      if (value !== undefined && !this.types.has(value))
        out.push({ pointer: `${pointer}/${name}`, message: `must be ${oneOf(this.types.keys())}`, code: 'not_one_of' });
    const type = f.resourceType === undefined ? undefined : this.types.get(f.resourceType);
    for (const [id, name] of [
      [f.resourceId, 'resource_id'],
      [f.subjectId, 'subject_id'],
    ] as const) {
      const problem = id === undefined ? null : idProblem(id);
      if (problem !== null) out.push({ pointer: `${pointer}/${name}`, ...problem });
    }
    if (f.relation !== undefined && type === undefined && !this.#relations.has(f.relation))
      out.push({ pointer: `${pointer}/relation`, message: `must be ${oneOf(this.#relations)}`, code: 'not_one_of' });
    if (f.relation !== undefined && type !== undefined && !type.relations.has(f.relation))
      out.push({
        pointer: `${pointer}/relation`,
        message: `must be ${oneOf(type.relations.keys())} of a ${type.name}`,
        code: 'not_one_of',
      });
    return out;
  }

  #object(type: string, id: string, pointer: string): FieldError[] {
    const out: FieldError[] = [];
    if (!this.types.has(type))
      out.push({ pointer: `${pointer}_type`, message: `must be ${oneOf(this.types.keys())}`, code: 'not_one_of' });
    const problem = idProblem(id);
    if (problem !== null) out.push({ pointer: `${pointer}_id`, ...problem });
    return out;
  }
}

const oneOf = (names: Iterable<string>): string => `one of ${[...names].join(', ')}`;

/** The mistake in an id; null when the id is valid. */
export function idProblem(id: string): Omit<FieldError, 'pointer'> | null {
  const limit = LIMITS.graphIdCharsMax;
  if (id === '') return { message: 'must not be empty', code: 'missing' };
  if (id.length > limit) return { message: `must have at most ${limit} characters`, code: 'too_long', limit };
  if (id.includes('\0') || !id.isWellFormed())
    return { message: 'must be text without NUL and without lone surrogates', code: 'malformed' };
  return null;
}

/** The schema of this release. */
export const readGraphSchema = (): GraphSchema =>
  new GraphSchema(fs.readFileSync(new URL('../../sql/spicedb-schema.zed', import.meta.url), 'utf8'));

/** Whether two texts define the same: the store spells a schema in its own order and without our comments. */
export function isSameSchema(a: string, b: string): boolean {
  const words = (text: string): string =>
    text
      .replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
      .split(/(?=\bdefinition )/)
      .map(d => d.replace(/\s+/g, ' ').trim())
      .sort()
      .join('\n');
  return words(a) === words(b);
}
