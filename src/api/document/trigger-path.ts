import { type ErrorCode, STATUS_OF, TITLE_OF } from '../../base/errors.ts';
import { refusalSchema } from './openapi-shared.ts';

/** HTTP triggers in the OpenAPI document: what they take and answer is the plugin's to say (docs/access.md "The decision"). */

type Json = Record<string, unknown>;

export const HTTP_TRIGGERS = {
  title: 'HTTP triggers',
  description: "The endpoints of plugins. What they take and answer is the plugin's to say.",
  path: '/api/triggers/http/{plugin_id}/{path}',
};

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;

/** What the host refuses before the plugin runs, and what it answers for a plugin that failed. */
const REFUSALS: readonly ErrorCode[] = [
  'malformed_request',
  'unauthorized',
  'forbidden',
  'not_found',
  'method_not_allowed',
  'request_timeout',
  'body_too_large',
  'internal',
  'plugin_trapped',
  'plugin_error',
  'plugin_response_invalid',
  'plugin_quota_exceeded',
  'no_slot',
  'memory_budget',
  'quarantined',
  'draining',
  'unavailable',
  'deadline_exceeded',
];

const ANSWER = {
  description: 'What the plugin answers, with its own status',
  content: { '*/*': { schema: { type: 'string' } } },
};

/** @param responses of the document, to which the refusals are added */
export function triggerPath(responses: Json): Json {
  const byStatus = Map.groupBy(REFUSALS, code => STATUS_OF[code]);
  const refusals = [...byStatus].map(([status, codes]) => {
    const name = `trigger.${codes.join('.')}`;
    responses[name] = {
      description: codes.map(code => `${TITLE_OF[code]} (${code})`).join('; '),
      content: { 'application/problem+json': { schema: refusalSchema(codes) } },
    };
    return [String(status), { $ref: `#/components/responses/${name}` }];
  });
  const parameters = [
    { name: 'plugin_id', in: 'path', required: true, schema: { type: 'string' } },
    {
      name: 'path',
      in: 'path',
      required: true,
      schema: { type: 'string' },
      description: 'The path of the trigger; it may have several segments',
    },
  ];
  const operations = METHODS.map(method => [
    method,
    {
      operationId: `httpTriggers.${method}`,
      tags: [HTTP_TRIGGERS.title],
      summary: `Call an HTTP trigger with ${method.toUpperCase()}`,
      description:
        'Who may call it is set for each trigger: every caller, users (with a session or a token), service keys, and a policy.',
      security: [{}, { user_session: [] }, { user_token: [] }, { service_key: [] }],
      parameters,
      ...(method === 'get' || method === 'delete'
        ? {}
        : { requestBody: { required: false, content: { '*/*': { schema: { type: 'string' } } } } }),
      responses: { 200: ANSWER, default: ANSWER, ...Object.fromEntries(refusals) },
    },
  ]);
  return Object.fromEntries(operations);
}
