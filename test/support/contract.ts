import fs from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { apiDocument } from '../../src/api/document/docs-api.ts';

/**
 * Holds every answer a test gets to the document of the API, so that the document cannot lie: the status must stand there, and the
 * body must be of its schema.
 */

/** The document, made once for all files of a run; the benchmarks, which use the same support, make it themselves. */
const made = process.env.TEST_API;
const document =
  made === undefined
    ? (await import('../../src/api/document/docs-api.ts')).apiDocument()
    : (JSON.parse(fs.readFileSync(made, 'utf8')) as ReturnType<typeof apiDocument>);
const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true, validateSchema: false });
addFormats.default(ajv);
ajv.addSchema(document, 'api');

type Operation = { method: string; path: string; segments: string[]; responses: Record<string, unknown> };

const operations: Operation[] = Object.entries(document.paths as Record<string, Record<string, Operation>>)
  // What triggers answer is their plugin's to say.
  .filter(([path]) => !path.startsWith('/api/triggers/'))
  .flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { responses }]) => ({
      method: method.toUpperCase(),
      path,
      segments: path.split('/'),
      responses,
    })),
  )
  // What is literal stands before what is not, as in the router.
  .sort((a, b) => a.segments.filter(s => s.startsWith('{')).length - b.segments.filter(s => s.startsWith('{')).length);

function operationOf(method: string, path: string): Operation | undefined {
  const given = path.split('/');
  return operations.find(
    ({ method: m, segments }) =>
      m === (method === 'HEAD' ? 'GET' : method) &&
      (segments.at(-1) === '{rest}' ? given.length >= segments.length : given.length === segments.length) &&
      segments.every((s, k) => (s.startsWith('{') ? given[k] !== '' || s === '{rest}' : s === given[k])),
  );
}

const validators = new Map<string, ValidateFunction>();

/** Compiled once for each schema: ajv knows a schema again by its object alone, and each compilation takes milliseconds. */
function validatorOf($ref: string): ValidateFunction {
  const known = validators.get($ref);
  if (known !== undefined) return known;
  const validate = ajv.compile({ $ref });
  validators.set($ref, validate);
  return validate;
}

const escaped = (key: string): string => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'));

/** What an answer has that the document does not allow; empty when it is as documented. */
export function contractProblems(method: string, path: string, status: number, type: string, text: string): string {
  const operation = operationOf(method, path);
  if (operation === undefined) {
    // What is no endpoint of the API: a path that is not there, a method it does not have, our own pages, preflights, triggers.
    const isApi = path.startsWith('/api/') && !path.startsWith('/api/triggers/') && method !== 'OPTIONS';
    return isApi && status !== 404 && status !== 405
      ? `${method} ${path} answered ${status} and is not documented`
      : '';
  }
  const where = `${method} ${operation.path} answered ${status}`;
  const response = operation.responses[String(status)] as
    | { $ref?: string; content?: Record<string, unknown> }
    | undefined;
  if (response === undefined) return `${where}, which is not documented: ${text.slice(0, 300)}`;
  const media = type.split(';', 1)[0] ?? '';
  const pointer =
    response.$ref?.slice(1) ?? `/paths/${escaped(operation.path)}/${method.toLowerCase()}/responses/${status}`;
  const content =
    response.$ref === undefined
      ? response.content
      : (document.components as { responses: Record<string, { content: Record<string, unknown> }> }).responses[
          response.$ref.split('/').at(-1) ?? ''
        ]?.content;
  if (method === 'HEAD') return '';
  if (content === undefined) return text === '' ? '' : `${where} with a body, which is not documented`;
  const documented = media in content ? media : '*/*';
  if (!(documented in content)) return `${where} with ${media}; documented are ${Object.keys(content).join(', ')}`;
  if (!/json$/.test(documented)) return '';
  const validate = validatorOf(`api#${pointer}/content/${escaped(documented)}/schema`);
  if (validate(JSON.parse(text))) return '';
  return `${where} with what its schema does not allow: ${ajv.errorsText(validate.errors)}: ${text.slice(0, 1000)}`;
}

const held = new Set<string>();
const send = globalThis.fetch;

/** Every answer from this address is held to the document from now on. */
export function holdToContract(base: string): void {
  held.add(base);
  globalThis.fetch = checkedFetch;
}

async function checkedFetch(...[input, init]: Parameters<typeof fetch>): Promise<Response> {
  const response = await send(input, init);
  const url = new URL(typeof input === 'object' && 'url' in input ? input.url : input);
  if (!held.has(url.origin)) return response;
  const type = response.headers.get('content-type') ?? '';
  const isJson = /^application\/(problem\+)?json/.test(type);
  const text = isJson ? await response.clone().text() : response.headers.get('content-length') === '0' ? '' : ' ';
  const method = init?.method ?? (typeof input === 'object' && 'method' in input ? input.method : 'GET');
  assertContract(method, url.pathname, response.status, type, response.body === null ? '' : text);
  return response;
}

/** @throws Error that says what the document does not allow */
export function assertContract(method: string, path: string, status: number, type: string, text: string): void {
  const problem = contractProblems(method.toUpperCase(), path, status, type, text);
  if (problem !== '') throw new Error(`contract: ${problem}`);
}
