import { type ErrorCode, STATUS_OF, TITLE_OF } from '../../base/errors.ts';
import { rolesWith } from '../../identity/admin-roles.ts';
import type { Contract, Idempotency, RawBody, ReplyShape, Resource } from '../contract/contract.ts';
import { type JsonSchema, toJsonSchema } from '../contract/json-schema.ts';
import {
  PROBLEM_SCHEMAS,
  problemName,
  problemSchema,
  refusalSchema,
  refusalsOf,
  SECURITY_SCHEMES,
  securityOf,
} from './openapi-shared.ts';
import { PROBLEM_MEMBERS } from './problem-members.ts';
import { HTTP_TRIGGERS, triggerPath } from './trigger-path.ts';

/** The OpenAPI 3.1 document of the API, made from its contracts (docs/api.md "Contract"). */

type Json = Record<string, unknown>;

/** Where schemas with a name of their own are gathered. */
class Components {
  readonly schemas: Record<string, unknown> = { ...PROBLEM_SCHEMAS };
  readonly responses: Record<string, unknown> = {};

  constructor() {
    for (const code of Object.keys(STATUS_OF) as ErrorCode[]) {
      const members = PROBLEM_MEMBERS[code];
      const own = members === undefined ? {} : this.take(toJsonSchema(members, 'output'));
      this.schemas[problemName(code)] = problemSchema(code, own);
    }
  }

  /** The schema as it stands in the document: named parts are gathered, and referred to. */
  take(schema: JsonSchema): Json {
    const { $defs, $schema: _, ...rest } = schema;
    for (const [name, part] of Object.entries($defs ?? {})) {
      const moved = moveReferences(part);
      const before = this.schemas[name];
      if (before !== undefined && JSON.stringify(before) !== JSON.stringify(moved))
        throw new Error(`two schemas are called ${name}`);
      this.schemas[name] = moved;
    }
    return moveReferences(rest) as Json;
  }
}

/** References of one schema to its parts, as references to parts of the document. */
function moveReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(moveReferences);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, v]) => [
      name,
      name === '$ref' && typeof v === 'string' ? v.replace('#/$defs/', '#/components/schemas/') : moveReferences(v),
    ]),
  );
}

function responseOf(shape: ReplyShape, status: string, example: unknown, components: Components): Response {
  const title = STATUS_TEXT[status] ?? 'The answer';
  if (shape === null) return { description: title };
  if ('media' in shape) {
    const described =
      shape.schema === undefined ? { type: 'string' } : components.take(toJsonSchema(shape.schema, 'output'));
    return { description: shape.description, content: { [shape.media]: { schema: described } } };
  }
  const schema = components.take(toJsonSchema(shape, 'output'));
  return {
    description: title,
    content: { 'application/json': { schema, ...(example === undefined ? {} : { example }) } },
  };
}

const STATUS_TEXT: Readonly<Record<string, string>> = {
  200: 'Done',
  201: 'Made',
  202: 'Begun',
  204: 'Done; no body',
  206: 'Done in part',
  302: 'Elsewhere',
  304: 'Not changed',
  307: 'Elsewhere',
  308: 'Elsewhere',
};

/** The header of answers that can be sent back in `If-Match`. */
const tagOf = ({ hasTag, ifMatch }: Contract, status: string): Json =>
  (hasTag ?? ifMatch !== undefined) && status === '200'
    ? { headers: { ETag: { description: 'What is read, for If-Match', schema: { type: 'string' } } } }
    : {};

/** What can come with one status. A refusal is a component, shared by all operations that refuse with the same codes. */
type Response = { description: string; content?: Json; name?: string };

function problemResponses(contract: Contract, components: Components): Record<string, Response> {
  const byStatus = Map.groupBy(refusalsOf(contract), code => STATUS_OF[code]);
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => {
      const schema = refusalSchema(codes);
      const description = codes.map(code => `${TITLE_OF[code]} (${code})`).join('; ');
      const response = { description, content: { 'application/problem+json': { schema } } };
      const name = codes.join('.');
      components.responses[name] = response;
      return [String(status), { ...response, name }];
    }),
  );
}

function bodyOf(body: Contract['body'], example: unknown, components: Components): Json {
  if (body == null) return {};
  if ('media' in body) return { requestBody: { required: true, ...rawBodyOf(body, components) } };
  const required = !body.safeParse(undefined).success;
  const schema = components.take(toJsonSchema(body, 'input'));
  const content = { schema, ...(example === undefined ? {} : { example }) };
  return { requestBody: { required, content: { 'application/json': content } } };
}

function rawBodyOf({ description, media, parts, schema }: RawBody, components: Components): Json {
  if (parts !== undefined) {
    const properties = Object.fromEntries(
      Object.entries(parts).map(([name, what]) => [
        name,
        { type: 'string', contentMediaType: 'application/octet-stream', description: what },
      ]),
    );
    return { description, content: { [media]: { schema: { type: 'object', properties } } } };
  }
  const described = schema === undefined ? {} : components.take(toJsonSchema(schema, 'input'));
  return { description, content: { [media]: { schema: described } } };
}

function parametersOf(contract: Contract): Json[] {
  const { example, params = {}, path, query } = contract;
  const inPath = [...path.matchAll(/\/(?::(\w+)|(\*)$)/g)].map(m => {
    const name = m[1] ?? 'rest';
    const shape = params[name];
    const { description, ...schema }: JsonSchema =
      shape === undefined ? { type: 'string', minLength: 1 } : toJsonSchema(shape, 'input');
    const shown = example?.params?.[name];
    const rest = {
      ...(description === undefined ? {} : { description }),
      ...(shown === undefined ? {} : { example: shown }),
    };
    return { name, in: 'path', required: true, schema: withoutMeta(schema), ...rest };
  });
  const whole = query === undefined ? undefined : toJsonSchema(query, 'input');
  const inQuery = Object.entries(whole?.properties ?? {}).map(([name, given]) => {
    const { description, ...schema } = typeof given === 'object' ? given : {};
    return {
      name,
      in: 'query',
      required: whole?.required?.includes(name) === true,
      schema: withoutMeta(schema),
      ...(description === undefined ? {} : { description }),
    };
  });
  return [...inPath, ...inQuery, ...headersOf(contract)];
}

const REPEATED: Readonly<Record<Idempotency, string>> = {
  answer: 'gets the same answer for 24 hours',
  secret: 'is refused with 409 and the id of what was made',
};

/** Headers an endpoint honours beyond those of every request. */
function headersOf({ idempotency, ifMatch }: Contract): Json[] {
  const header = (name: string, description: string) => ({
    name,
    in: 'header',
    required: false,
    schema: { type: 'string', minLength: 1, maxLength: 255 },
    description,
  });
  const repeated = (kind: Idempotency): string =>
    `A key of this request alone. The same request with the same key ${REPEATED[kind]}.`;
  return [
    ...(ifMatch === undefined
      ? []
      : [header('If-Match', `The ETag of ${ifMatch}. When it was changed meanwhile, the change is refused with 412.`)]),
    ...(idempotency === undefined ? [] : [header('Idempotency-Key', repeated(idempotency))]),
  ];
}

function withoutMeta({ $schema: _, ...schema }: JsonSchema): Json {
  return schema;
}

/** The path as OpenAPI writes it: `/api/admin/keys/{key}`. */
const pathText = (path: string): string => path.replace(/:(\w+)/g, '{$1}').replace(/\*$/, '{rest}');

const GUARD_TEXT: Readonly<Record<Contract['guard'], string>> = {
  none: 'Open to every caller.',
  user: 'For a logged-in user.',
  admin: 'For administrators.',
  admin_recent: 'For administrators whose password was given in the last ten minutes.',
  admin_session: 'For administrators, also while their temporary password stands.',
  admin_confirm: 'For administrators, also while their temporary password stands.',
  import: 'For the import key, and administrators whose password was given in the last ten minutes.',
  import_log: 'For the import key, and administrators.',
};

/** Which administration keys and roles open an endpoint, in words; empty where there is nothing to say. */
export function keysText({ key }: Contract): string {
  if (key === undefined) return '';
  if (key === 'own') return 'No administration key opens it.';
  if (key === 'never') return 'No administration key opens it, and of the roles only owner.';
  const scopes = key.filter(s => s !== 'plugins:deploy:named');
  const roles = new Set(scopes.flatMap(rolesWith));
  return `Administration keys need the scope ${scopes.join(' or ')}, administrators the role ${[...roles].join(' or ')}.`;
}

const descriptionOf = (c: Contract): string =>
  [c.description, c.callers?.words ?? GUARD_TEXT[c.guard], keysText(c)]
    .filter(t => t !== undefined && t !== '')
    .join(' ');

const LATE =
  'Stored, but this host could not make sure within a second that it acts on it: until it can, it answers 503 where that matters';

/** Names of endpoints are unique within their resource; operation ids within the document: `adminKeys.create`. */
function operation(id: string, tag: string, contract: Contract, components: Components): Json {
  const responses = problemResponses(contract, components);
  for (const [status, shape] of Object.entries(contract.replies)) {
    const example = Number(status) < 300 ? contract.example?.reply : undefined;
    const reply = { ...responseOf(shape, status, example, components), ...tagOf(contract, status) };
    const refusal = responses[status];
    // Both a value and a refusal can come with one status: they differ by their media type.
    responses[status] = refusal === undefined ? reply : { ...reply, content: { ...refusal.content, ...reply.content } };
  }
  // `PLAIN_SUCCESS` of the router.
  const plain = ['200', '201', '204'].find(status => status in contract.replies);
  if (contract.method !== 'GET' && contract.skipChangeBarrier !== true && plain !== undefined)
    responses['202'] ??= { ...responses[plain], description: LATE };
  // Reads that show a tag honour If-None-Match (`notModified`).
  if (contract.method === 'GET' && contract.hasTag === true)
    responses['304'] ??= responseOf(null, '304', undefined, components);
  return {
    operationId: id,
    tags: [tag],
    summary: contract.summary,
    description: descriptionOf(contract),
    security: securityOf(contract),
    parameters: parametersOf(contract),
    ...bodyOf(contract.body, contract.example?.body, components),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, r]) => [
        status,
        'name' in r ? { $ref: `#/components/responses/${r.name}` } : r,
      ]),
    ),
  };
}

/**
 * The document.
 *
 * @param resources by the name under which a client has them
 * @param version of the API
 */
export function openApiDocument(resources: Readonly<Record<string, Resource>>, version: string): Json {
  const components = new Components();
  const paths: Record<string, Json> = {};
  for (const [name, { endpoints, title }] of Object.entries(resources))
    for (const [verb, contract] of Object.entries(endpoints)) {
      const path = pathText(contract.path);
      paths[path] ??= {};
      paths[path][contract.method.toLowerCase()] = operation(`${name}.${verb}`, title, contract, components);
    }
  paths[HTTP_TRIGGERS.path] = triggerPath(components.responses);
  return {
    openapi: '3.1.1',
    info: {
      title: 'Plugin host',
      version,
      summary: 'Runs sandboxed WebAssembly plugins behind HTTP endpoints and messenger commands.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: [...Object.values(resources), HTTP_TRIGGERS].map(r => ({ name: r.title, description: r.description })),
    paths,
    components: { securitySchemes: SECURITY_SCHEMES, schemas: components.schemas, responses: components.responses },
  };
}
