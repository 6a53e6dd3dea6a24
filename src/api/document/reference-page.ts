import { escapeHtml } from '../../base/html.ts';

/** The reference page: the OpenAPI document as HTML, without scripts and without anything that is loaded. */

type Json = Record<string, unknown>;

export const REFERENCE_STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --mark: #0a58ca; }
@media (prefers-color-scheme: dark) { :root { --mark: #79b8ff; } }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; display: grid; grid-template-columns: 18rem minmax(0, 1fr); }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1rem; border-right: 1px solid var(--line); font-size: 0.9rem; }
nav ul { list-style: none; margin: 0 0 0.8rem; padding: 0; }
nav a, h3 a { text-decoration: none; color: inherit; }
nav a:hover, h3 a:hover { color: var(--mark); }
main { padding: 1rem 2rem 6rem; max-width: 60rem; }
article { border-top: 1px solid var(--line); padding: 1rem 0 1.5rem; }
h2 { margin-top: 3rem; }
h3 { margin: 0 0 0.3rem; font-size: 1.1rem; }
h4 { margin: 1rem 0 0.3rem; }
code, pre { font: 0.875rem/1.45 ui-monospace, monospace; }
pre { background: var(--soft); padding: 0.7rem 0.9rem; border-radius: 6px; overflow: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.6rem 0.3rem 0; border-bottom: 1px solid var(--line); }
.method { display: inline-block; min-width: 4.2rem; font-weight: 700; }
.type { color: #777; }
.deep1 { padding-left: 1.2rem; }
.deep2 { padding-left: 2.4rem; }
.deep3 { padding-left: 3.6rem; }
.deep4 { padding-left: 4.8rem; }
.deep5 { padding-left: 6.0rem; }
.deep6 { padding-left: 7.2rem; }
details > summary { cursor: pointer; }
@media (max-width: 50rem) { body { display: block; } nav { position: static; height: auto; border: 0; } main { padding: 1rem; } }
`;

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const objectOf = (value: unknown): Json => (isObject(value) ? value : {});
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const html = (value: unknown): string => escapeHtml(textOf(value));

/** Resolves a reference of the document; another value is itself. */
function resolve(document: Json, value: unknown): Json {
  const given = objectOf(value);
  if (typeof given.$ref !== 'string') return given;
  let found: unknown = document;
  for (const part of given.$ref.slice(2).split('/')) found = objectOf(found)[part];
  return objectOf(found);
}

/** The type of a schema in a few words: "string, one of a, b". */
function typeText(document: Json, value: unknown): string {
  const schema = objectOf(value);
  if (typeof schema.$ref === 'string') return textOf(schema.$ref.split('/').at(-1));
  const choices = [...listOf(schema.anyOf), ...listOf(schema.oneOf)];
  if (choices.length > 0) return choices.map(c => typeText(document, c)).join(' or ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (Array.isArray(schema.enum)) return schema.enum.map(v => JSON.stringify(v)).join(', ');
  if (schema.type === 'array') return `list of ${typeText(document, schema.items)}`;
  const type = Array.isArray(schema.type) ? schema.type.join(' or ') : textOf(schema.type) || 'any value';
  const bounds = boundsText(schema);
  return [typeof schema.format === 'string' ? `${type} (${schema.format})` : type, bounds]
    .filter(t => t !== '')
    .join(', ');
}

/** Limits of a schema: "1 to 200", "at most 300 characters". */
function boundsText({ maxItems, maxLength, maximum, minLength, minimum }: Json): string {
  const characters =
    maxLength === undefined
      ? minLength === 1
        ? 'not empty'
        : ''
      : `${minLength === undefined ? 'at most' : `${minLength} to`} ${maxLength} characters`;
  const isUsual = maximum === Number.MAX_SAFE_INTEGER || maximum === undefined;
  const range = isUsual ? '' : `${minimum ?? 'at most'}${minimum === undefined ? ' ' : ' to '}${maximum}`;
  return [characters, range, maxItems === undefined ? '' : `at most ${maxItems} items`]
    .filter(t => t !== '')
    .join(', ');
}

const DEPTH_MAX = 6;

/** Members of an object, one row each, with those of objects within. */
function memberRows(document: Json, value: unknown, depth: number, within: readonly string[]): string {
  const reference = textOf(objectOf(value).$ref);
  if (depth > DEPTH_MAX || (reference !== '' && within.includes(reference))) return '';
  const schema = resolve(document, value);
  const seen = reference === '' ? within : [...within, reference];
  const choices = [...listOf(schema.anyOf), ...listOf(schema.oneOf), ...listOf(schema.allOf)];
  if (choices.length > 0) return choices.map(c => memberRows(document, c, depth, seen)).join('');
  if (schema.type === 'array') return memberRows(document, schema.items, depth, seen);
  const required = listOf(schema.required);
  const rows = Object.entries(objectOf(schema.properties)).map(([name, member]) => {
    const description = textOf(objectOf(member).description) || textOf(resolve(document, member).description);
    const optional = required.includes(name) ? '' : ' <span class="type">(optional)</span>';
    return `<tr><td><span class="deep${depth}"><code>${escapeHtml(name)}</code>${optional}</span></td><td class="type">${escapeHtml(typeText(document, member))}</td><td>${escapeHtml(description)}</td></tr>${memberRows(document, member, depth + 1, seen)}`;
  });
  const open = isObject(schema.additionalProperties)
    ? memberRows(document, schema.additionalProperties, depth + 1, seen)
    : '';
  return rows.join('') + open;
}

function schemaTable(document: Json, schema: unknown): string {
  const rows = memberRows(document, schema, 0, []);
  const type = `<p class="type">${escapeHtml(typeText(document, schema))}</p>`;
  return rows === '' ? type : `${type}<table>${rows}</table>`;
}

function parametersTable(document: Json, operation: Json): string {
  const rows = listOf(operation.parameters).map(p => {
    const { description, in: where, name, required, schema } = resolve(document, p);
    const optional = required === true ? '' : ' <span class="type">(optional)</span>';
    return `<tr><td><code>${html(name)}</code>${optional}</td><td class="type">${html(where)}: ${escapeHtml(typeText(document, schema))}</td><td>${html(description)}</td></tr>`;
  });
  return rows.length === 0 ? '' : `<h4>Parameters</h4><table>${rows.join('')}</table>`;
}

function bodySection(document: Json, operation: Json): string {
  const body = objectOf(operation.requestBody);
  const sections = Object.entries(objectOf(body.content)).map(([media, content]) => {
    const optional = body.required === true ? '' : ', optional';
    return `<h4>Body <span class="type">${escapeHtml(media)}${optional}</span></h4>${body.description === undefined ? '' : `<p>${html(body.description)}</p>`}${schemaTable(document, objectOf(content).schema)}`;
  });
  return sections.join('');
}

function answers(document: Json, operation: Json): string {
  return Object.entries(objectOf(operation.responses))
    .map(([status, given]) => {
      const response = resolve(document, given);
      const content = Object.entries(objectOf(response.content)).filter(
        ([media]) => media !== 'application/problem+json',
      );
      const shown = content
        .map(([media, c]) => `<p><code>${escapeHtml(media)}</code></p>${schemaTable(document, objectOf(c).schema)}`)
        .join('');
      const title = `<strong>${status}</strong> ${html(response.description)}`;
      return shown === '' ? `<p>${title}</p>` : `<details><summary>${title}</summary>${shown}</details>`;
    })
    .join('');
}

/** A curl line that does it, with what the example says. */
function curlOf(method: string, path: string, operation: Json): string {
  const [scheme] = Object.keys(objectOf(listOf(operation.security)[0]));
  const credential =
    scheme === undefined
      ? ''
      : scheme.endsWith('_session')
        ? ` \\\n  -b '${scheme}=...'`
        : ` \\\n  -H 'Authorization: Bearer ...'`;
  const [[media, content] = []] = Object.entries(objectOf(objectOf(operation.requestBody).content));
  const example = objectOf(content).example;
  const body =
    media === 'application/json' && example !== undefined
      ? ` \\\n  -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(example)}'`
      : media === 'multipart/form-data'
        ? ' \\\n  -F file=@FILE'
        : '';
  return `curl${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} http://127.0.0.1:8080${path}${credential}${body}`;
}

function article(document: Json, method: string, path: string, operation: Json): string {
  const id = textOf(operation.operationId);
  return `<article id="${escapeHtml(id)}">
<h3><a href="#${escapeHtml(id)}">${html(operation.summary)}</a></h3>
<p><code><span class="method">${method.toUpperCase()}</span>${escapeHtml(path)}</code></p>
<p>${html(operation.description)}</p>
<pre>${escapeHtml(curlOf(method, path, operation))}</pre>
${parametersTable(document, operation)}${bodySection(document, operation)}
<h4>Answers</h4>${answers(document, operation)}
</article>`;
}

type Shown = { tag: string; method: string; path: string; operation: Json };

function operationsOf(document: Json): Shown[] {
  return Object.entries(objectOf(document.paths)).flatMap(([path, methods]) =>
    Object.entries(objectOf(methods)).map(([method, value]) => {
      const operation = objectOf(value);
      return { tag: textOf(listOf(operation.tags)[0]), method, path, operation };
    }),
  );
}

/** The members that every refusal has, and for each code those it has beyond them. */
function problemSection(document: Json): string {
  const { schemas } = objectOf(document.components);
  const codes = Object.keys(objectOf(schemas)).flatMap(name => /^Problem\.(\w+)$/.exec(name)?.[1] ?? []);
  const further = Object.entries(objectOf(schemas)).flatMap(([name, schema]) => {
    const [, code] = /^Problem\.(\w+)$/.exec(name) ?? [];
    const own = objectOf(listOf(objectOf(schema).allOf)[1]);
    const { code: _, status, ...properties } = objectOf(own.properties);
    const title = `<h4><code>${escapeHtml(code ?? '')}</code> <span class="type">${html(objectOf(status).const)}</span></h4>`;
    const hasMore = code !== undefined && Object.keys(properties).length > 0;
    return hasMore ? [`${title}${schemaTable(document, { ...own, properties })}`] : [];
  });
  const every = schemaTable(document, {
    allOf: [
      {
        properties: { status: { type: 'integer' }, code: { enum: codes, description: 'What went wrong' } },
        required: ['status', 'code'],
      },
      { $ref: '#/components/schemas/ProblemDetails' },
    ],
  });
  return `<details><summary>Every refusal is a problem document (RFC 9457)</summary>${every}
<p>With these codes it has further members:</p>${further.join('')}</details>`;
}

/** The page. @param document as `openApiDocument` makes it */
export function referencePage(document: Json): string {
  const tags = listOf(document.tags).map(t => textOf(objectOf(t).name));
  const all = Map.groupBy(operationsOf(document), o => o.tag);
  const contents = tags.map(tag => {
    const items = (all.get(tag) ?? []).map(
      ({ operation }) => `<li><a href="#${html(operation.operationId)}">${html(operation.summary)}</a></li>`,
    );
    return `<strong>${escapeHtml(tag)}</strong><ul>${items.join('')}</ul>`;
  });
  const sections = tags.map(tag => {
    const articles = (all.get(tag) ?? []).map(o => article(document, o.method, o.path, o.operation));
    return `<section><h2>${escapeHtml(tag)}</h2>${articles.join('\n')}</section>`;
  });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Plugin host: reference of the API</title>
<style>${REFERENCE_STYLE}</style>
</head>
<body>
<nav>${contents.join('')}</nav>
<main>
<h1>Plugin host: reference of the API</h1>
<p>Version ${html(objectOf(document.info).version)}. The same as a document for programs: <a href="/api/openapi.json">OpenAPI 3.1</a>.
HTTP triggers of plugins are called at <code>/api/triggers/http/&lt;plugin_id&gt;&lt;path&gt;</code>; what they take and answer is their plugin's to say.</p>
${problemSection(document)}
${sections.join('\n')}
</main>
</body>
</html>
`;
}
