import fs from 'node:fs';
import path from 'node:path';
import { apiDocument } from '../../src/api/document/docs-api.ts';

/**
 * Makes the types of the client from the OpenAPI document: `npm run client`. They have the shape that `openapi-fetch` reads (docs/RATIONALE.md
 * "Libraries, and code of our own").
 */

export const API_TYPES = path.join(import.meta.dirname, 'api.d.ts');

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const objectOf = (value: unknown): Json => (isObject(value) ? value : {});
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const literal = (value: unknown): string =>
  typeof value === 'string' && !/['\\\n]/.test(value) ? `'${value}'` : JSON.stringify(value);
const nameOf = (reference: unknown): string => String(reference).split('/').at(-1) ?? '';

const SIMPLE: Readonly<Record<string, string>> = {
  string: 'string',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
};

/** Alternatives in one type, each once. */
const union = (types: readonly string[]): string => [...new Set(types)].join(' | ') || 'unknown';

/** A type that stands in front of `[]` or `&`. */
const grouped = (type: string): string => (/[|&]/.test(type) ? `(${type})` : type);

/** A JSON Schema as a type. */
function typeOf(value: unknown, indent: string): string {
  const schema = objectOf(value);
  if (schema.$ref !== undefined) return `components['schemas'][${literal(nameOf(schema.$ref))}]`;
  const choices = [...listOf(schema.anyOf), ...listOf(schema.oneOf)];
  if (choices.length > 0) return union(choices.map(c => typeOf(c, indent)));
  const all = listOf(schema.allOf);
  if (all.length > 0) return all.map(s => grouped(typeOf(s, indent))).join(' & ');
  if (schema.const !== undefined) return literal(schema.const);
  if (Array.isArray(schema.enum)) return union(schema.enum.map(literal));
  if (Array.isArray(schema.type)) return union(schema.type.map(type => typeOf({ ...schema, type }, indent)));
  if (schema.type === 'array') return `${grouped(typeOf(schema.items, indent))}[]`;
  if (schema.type === 'object' || schema.properties !== undefined) return objectType(schema, indent);
  return SIMPLE[String(schema.type)] ?? 'unknown';
}

function objectType({ additionalProperties, properties, required }: Json, indent: string): string {
  const members = Object.entries(objectOf(properties)).map(([name, schema]) => {
    const optional = listOf(required).includes(name) ? '' : '?';
    return { name, optional, type: typeOf(schema, `${indent}  `), about: objectOf(schema).description };
  });
  const isOpen = additionalProperties !== false && (additionalProperties !== undefined || members.length === 0);
  const rest = isObject(additionalProperties) ? typeOf(additionalProperties, indent) : 'unknown';
  if (members.length === 0) return isOpen ? `Record<string, ${rest}>` : 'Record<string, never>';
  const lines = members.map(
    m => `${comment(m.about, `${indent}  `)}${indent}  ${literal(m.name)}${m.optional}: ${m.type};\n`,
  );
  const known = `{\n${lines.join('')}${indent}}`;
  return isOpen ? `${known} & Record<string, unknown>` : known;
}

const comment = (text: unknown, indent: string): string =>
  typeof text === 'string' ? `${indent}/** ${text.replaceAll('*/', '* /')} */\n` : '';

/** Members of a type whose names and types are known. */
const block = (members: ReadonlyArray<[name: string, type: string]>, indent: string): string =>
  members.length === 0
    ? '{}'
    : `{\n${members.map(([name, type]) => `${indent}  ${name}: ${type};\n`).join('')}${indent}}`;

/** Bodies by media type. What is no JSON is sent and received as it is. */
function contentType(content: unknown, indent: string): string {
  const bodies = Object.entries(objectOf(content)).map(([media, c]): [string, string] => {
    const type = /json$/.test(media) ? typeOf(objectOf(c).schema, `${indent}  `) : rawType(media);
    return [literal(media), type];
  });
  return block(bodies, indent);
}

const rawType = (media: string): string => (media === 'multipart/form-data' ? 'FormData' : 'unknown');

function parametersType(operation: Json, indent: string): string {
  const all = listOf(operation.parameters).map(objectOf);
  const members = ['query', 'header', 'path'].flatMap((place): Array<[string, string]> => {
    const here = all.filter(p => p.in === place);
    if (here.length === 0) return [];
    const properties = Object.fromEntries(
      here.map(p => [p.name, { ...objectOf(p.schema), description: p.description }]),
    );
    const required = here.filter(p => p.required === true).map(p => p.name);
    const type = objectType({ properties, required, additionalProperties: false }, `${indent}  `);
    return [[`${place}${required.length === 0 ? '?' : ''}`, type]];
  });
  return block(members, indent);
}

function operationType(operation: Json, indent: string): string {
  const body = objectOf(operation.requestBody);
  const inner = `${indent}  `;
  const all = Object.entries(objectOf(operation.responses));
  // Refusals are components of the document; the client throws each as the same type.
  const isRefusal = (given: unknown): boolean => objectOf(given).$ref !== undefined;
  const refused = all.filter(([, given]) => isRefusal(given)).map(([status]) => status);
  const answers = all
    .filter(([, given]) => !isRefusal(given))
    .map(([status, given]): [string, string] => {
      const { content } = objectOf(given);
      const type = content === undefined ? 'content?: never' : `content: ${contentType(content, `${inner}  `)}`;
      return [status, `{ headers: Record<string, unknown>; ${type} }`];
    });
  const responses = `${refused.length === 0 ? '' : `Refused<${refused.join(' | ')}> & `}${block(answers, inner)}`;
  const bodyMember: Array<[string, string]> =
    operation.requestBody === undefined
      ? []
      : [[`requestBody${body.required === true ? '' : '?'}`, `{ content: ${contentType(body.content, inner)} }`]];
  return block([['parameters', parametersType(operation, inner)], ...bodyMember, ['responses', responses]], indent);
}

/** The text of `api.d.ts`. */
export function apiTypes(): string {
  const document: Json = JSON.parse(JSON.stringify(apiDocument()));
  const { schemas } = objectOf(document.components);
  const parts = Object.entries(objectOf(schemas)).map(([name, s]): [string, string] => [
    literal(name),
    typeOf(s, '    '),
  ]);
  const paths = Object.entries(objectOf(document.paths)).map(([where, methods]): [string, string] => {
    const rows = Object.entries(objectOf(methods)).map(([method, operation]): [string, string] => [
      method,
      operationType(objectOf(operation), '    '),
    ]);
    return [literal(where), block(rows, '  ')];
  });
  const codes = parts.flatMap(([name]) => /^'Problem\.(\w+)'$/.exec(name)?.[1] ?? []);
  return `/** Made from the OpenAPI document by "npm run client": not to be changed by hand. */

/** A refusal of any code. */
export type Problem = components['schemas']['ProblemDetails'] & {
  status: number;
  code: ${union(codes.map(literal))};
};

type Refused<Status extends number> = {
  [S in Status]: {
    headers: Record<string, unknown>;
    content: { 'application/problem+json': Problem };
  };
};

export interface paths ${block(paths, '')}

export interface components ${block([['schemas', block(parts, '  ')]], '')}
`;
}

if (process.argv[1] === import.meta.filename) fs.writeFileSync(API_TYPES, apiTypes());
