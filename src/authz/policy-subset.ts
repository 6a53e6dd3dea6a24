import { didYouMean } from '../base/nearest-name.ts';
import type { GraphSchema } from '../graph/graph-schema.ts';
import {
  type ASTNode,
  COMPREHENSIONS,
  childrenOf,
  find,
  isComprehension,
  PolicyError,
  patternError,
  rangeOf,
} from './policy-ast.ts';

/**
 * The subset of CEL for policies: strings, integers, booleans and lists of them. Everything else is refused, because it
 * costs too much, or because the library's result differs from the CEL specification
 * (docs/RATIONALE.md "What policies may hold").
 */

/** An unknown answer in their body stops them, so each element would need a separate call to the graph. */
const ONE_BY_ONE = new Set(['exists_one', 'map', 'filter']);
const GRAPH_FUNCTIONS = new Set(['check', 'is_member']);
/**
 * Functions that may be called. None of them makes a value larger than its arguments, or takes more than linear time.
 */
const OFFERED: ReadonlySet<string> = new Set([
  ...['check', 'is_member', 'has_role', 'has_any_role', 're_match', 'has', 'size', 'string', 'bool'],
  ...['startsWith', 'endsWith', 'contains', ...COMPREHENSIONS],
]);
const INSTEAD = new Map([
  ['matches', 'use re_match(text, pattern)'],
  ['dyn', 'types are known when a policy is saved'],
  ['type', 'types are known when a policy is saved'],
  ['uint', 'whole numbers are written without u'],
  ['bytes', 'compare texts'],
  ['int', 'compare texts, or whole numbers as they are'],
  ['double', 'policies know whole numbers'],
]);
const NESTING_MAX = 2;
const INT_MAX = 9_223_372_036_854_775_807n;
const ORDERINGS = new Set(['<', '<=', '>', '>=']);

/** Objects a policy can use, with their attributes. */
export const OBJECTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  user: {
    id: 'int',
    external_id: 'string',
    groups: 'list<string>',
    roles: 'list<string>',
    primary_channel: 'string',
    locale: 'string',
    nationality_type: 'string',
    funding_type: 'string',
    education_form: 'string',
  },
  principal: { kind: 'string', service_key_id: 'int' },
};

/** The context of a node. */
type Place = { nesting: number; parent: ASTNode | null; names: readonly string[] };

/** Refusals that need no types. Reports each place once; of overlapping places only the outermost. */
export function subsetErrors(root: ASTNode): PolicyError[] {
  const errors: PolicyError[] = [];
  const visit = (node: ASTNode, place: Place): void => {
    const found = errorAt(node, place);
    if (found !== null) errors.push(found);
    // Mistakes inside a refused place are reported once that place is corrected.
    if (found !== null && found.start === node.range.start && found.end === node.range.end) return;
    for (const [child, below] of placesBelow(node, place)) visit(child, below);
  };
  visit(root, { nesting: 0, parent: null, names: [] });
  return errors;
}

function placesBelow(node: ASTNode, place: Place): Array<[ASTNode, Place]> {
  const children = childrenOf(node);
  const plain: Place = { ...place, parent: node };
  if (!isComprehension(node)) return children.map(child => [child, plain]);
  // The node of the element's name is between the list and the body.
  const [list, name, ...body] = children;
  const names = name?.op === 'id' ? [...place.names, name.args] : place.names;
  const inside: Place = { nesting: place.nesting + 1, parent: node, names };
  const below = body.map((child): [ASTNode, Place] => [child, inside]);
  return list === undefined ? below : [[list, plain], ...below];
}

function errorAt(node: ASTNode, place: Place): PolicyError | null {
  const refuse = (message: string, at: ASTNode = node): PolicyError => new PolicyError(message, ...rangeOf(at));
  switch (node.op) {
    case 'call':
    case 'rcall':
      return callError(node, place);
    case 'value':
      return literalError(node, refuse);
    case 'map':
      return refuse('{key: value} is not supported; compare with each value');
    case 'id':
      return nameError(node, place);
    case '-_':
      return node.args.op === 'value' && typeof node.args.args === 'bigint'
        ? null
        : refuse('a minus sign is only allowed before a literal number; write 0 - x instead');
    case '/':
    case '%': {
      const [, by] = node.args;
      return by.op === 'value' && typeof by.args === 'bigint' && by.args > 0n
        ? null
        : refuse(`the number after ${node.op} must be a literal whole number above zero`, by);
    }
    case '+':
      return place.nesting > 0 ? refuse('+ is not allowed inside all, exists, map and filter') : null;
    default:
      return null;
  }
}

function literalError(node: ASTNode, refuse: (message: string) => PolicyError): PolicyError | null {
  const value: unknown = node.args;
  if (typeof value === 'string' || typeof value === 'boolean') return null;
  if (typeof value === 'bigint')
    return value <= INT_MAX ? null : refuse(`the largest whole number is ${INT_MAX}; this one is larger`);
  if (typeof value === 'number') return refuse('numbers with a fraction are not supported; use whole numbers');
  if (value === null) return refuse('null is not supported: an attribute that is not set is an empty text');
  if (value instanceof Uint8Array) return refuse('bytes (b"...") are not supported; compare texts');
  return refuse('unsigned numbers are not supported; write whole numbers without u');
}

/** An attribute that is written without its object. */
function ofObject(name: string): string {
  const [found] = Object.entries(OBJECTS).filter(([, attributes]) => Object.hasOwn(attributes, name));
  return found === undefined ? '' : `; did you mean "${found[0]}.${name}"?`;
}

/** The mistake in a name: it must be an attribute of an object, or the name of an element. */
function nameError(node: ASTNode, { names, parent }: Place): PolicyError | null {
  if (node.op !== 'id') return null;
  const name = node.args;
  if (names.includes(name)) return null;
  if (OBJECTS[name] === undefined || !Object.hasOwn(OBJECTS, name))
    return new PolicyError(
      `Unknown variable: ${name}${ofObject(name) || didYouMean(name, [...Object.keys(OBJECTS), ...names])}`,
      ...rangeOf(node),
    );
  const known = Object.keys(OBJECTS[name]);
  if (parent?.op === '.' && parent.args[0] === node) {
    const field = parent.args[1];
    if (known.includes(field)) return null;
    const end = parent.range.end;
    return new PolicyError(`No such key: ${field}${didYouMean(field, known)}`, end - field.length, end);
  }
  if (parent?.op === '[]' && parent.args[0] === node) {
    const [, key] = parent.args;
    if (key.op === 'value' && typeof key.args === 'string')
      return known.includes(key.args)
        ? null
        : new PolicyError(`No such key: ${key.args}${didYouMean(key.args, known)}`, ...rangeOf(parent));
    return new PolicyError(
      `the attribute of ${name} must be a literal name, as in ${name}.${known[0]}`,
      ...rangeOf(key),
    );
  }
  return new PolicyError(
    `${name} has no value by itself; name an attribute, as in ${name}.${known[0]}`,
    ...rangeOf(node),
  );
}

function callError(node: ASTNode, { names, nesting }: Place): PolicyError | null {
  if (node.op !== 'call' && node.op !== 'rcall') return null;
  const [name] = node.args;
  const refuse = (message: string, at: ASTNode = node): PolicyError => new PolicyError(message, ...rangeOf(at));
  if (!OFFERED.has(name)) {
    const instead = INSTEAD.get(name);
    return refuse(`${name} is not supported${instead === undefined ? didYouMean(name, OFFERED) : `; ${instead}`}`);
  }
  if (name === 're_match') {
    if (nesting > 1) return refuse('re_match may be inside one all or exists, not inside nested ones');
    return patternError(node);
  }
  if (name === 'has' && node.op === 'call') {
    const [arg] = node.args[1];
    return arg?.op === '.' && arg.args[0].op === 'id' && !names.includes(arg.args[0].args)
      ? null
      : refuse('has needs an attribute, as in has(user.locale)');
  }
  if (!isComprehension(node)) return null;
  if (nesting >= NESTING_MAX) return refuse(`all, exists, map and filter may be nested ${NESTING_MAX} deep`);
  return comprehensionError(node, name);
}

/**
 * The mistake in a comprehension: a computed list could have any length, and in some of them checks would be made one
 * by one.
 */
function comprehensionError(node: ASTNode, name: string): PolicyError | null {
  const [list, element, ...body] = childrenOf(node);
  const sum = list === undefined ? undefined : find(list, n => n.op === '+');
  if (sum !== undefined)
    return new PolicyError('lists cannot be joined here; use all or exists on each list', ...rangeOf(sum));
  if (element?.op === 'id' && Object.hasOwn(OBJECTS, element.args))
    return new PolicyError(
      `the name ${element.args} is in use; choose another name for the element`,
      ...rangeOf(element),
    );
  if (!ONE_BY_ONE.has(name)) return null;
  for (const part of body) {
    const check = find(part, n => n.op === 'call' && GRAPH_FUNCTIONS.has(n.args[0]));
    if (check !== undefined)
      return new PolicyError(
        `${name} would make one graph check for each element; use exists or all`,
        ...rangeOf(check),
      );
  }
  return null;
}

/** Refusals that depend on types, after the library's type check. */
export function typeErrors(root: ASTNode): PolicyError[] {
  const errors: PolicyError[] = [];
  const visit = (node: ASTNode): void => {
    if (ORDERINGS.has(node.op) && childrenOf(node).some(side => typeOf(side) !== 'int'))
      errors.push(
        new PolicyError(`${node.op} compares whole numbers only; texts and booleans have no order`, ...rangeOf(node)),
      );
    for (const child of childrenOf(node)) visit(child);
  };
  visit(root);
  return errors;
}

/** The type that the library has stored on a node. */
function typeOf(node: ASTNode): string | null {
  if (!('checkedType' in node)) return null;
  const type = node.checkedType;
  return typeof type === 'object' && type !== null && 'name' in type ? String(type.name) : null;
}

/** Names that the graph schema does not have. Computed names are checked only at evaluation. */
export function schemaErrors(root: ASTNode, schema: GraphSchema): PolicyError[] {
  const errors: PolicyError[] = [];
  const visit = (node: ASTNode): void => {
    const found = node.op === 'call' ? graphError(node, schema) : null;
    if (found !== null) errors.push(found);
    childrenOf(node).forEach(visit);
  };
  visit(root);
  return errors;
}

function graphError(call: ASTNode, schema: GraphSchema): PolicyError | null {
  const name = call.op === 'call' ? call.args[0] : '';
  if (name !== 'check' && name !== 'is_member') return null;
  const texts = childrenOf(call).map(n => ({
    node: n,
    text: n.op === 'value' && typeof n.args === 'string' ? n.args : null,
  }));
  const [permission, object] = name === 'check' ? texts : [{ node: call, text: 'member' }, texts[0]];
  if (object === undefined || object.text === null) return null;
  const type = schema.types.get(object.text);
  const list = (names: Iterable<string>): string => [...names].join(', ');
  if (type === undefined)
    return new PolicyError(
      `there is no object type "${object.text}"; there are ${list(schema.types.keys())}${didYouMean(object.text, schema.types.keys())}`,
      ...rangeOf(object.node),
    );
  if (permission === undefined || permission.text === null) return null;
  const known = [...type.permissions.keys(), ...type.relations.keys()];
  if (known.includes(permission.text)) return null;
  return new PolicyError(
    `a ${type.name} has no permission or relation "${permission.text}"; it has ${list(known)}${didYouMean(permission.text, known)}`,
    ...rangeOf(permission.node),
  );
}
