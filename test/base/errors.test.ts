import fs from 'node:fs';
import t from 'tap';
import { type ErrorCode, messageOf, ServiceError, STATUS_OF, TITLE_OF } from '../../src/base/errors.ts';
import { problemReply } from '../../src/http/problem-reply.ts';

/** docs/api.md "Errors", written out: the codes are an interface, so a change must be made twice. */
const WANT: Record<ErrorCode, number> = {
  malformed_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  second_factor_required: 401,
  second_factor_setup_required: 403,
  password_change_required: 403,
  password_confirmation_required: 403,
  page_proof_required: 403,
  conflict: 409,
  permissions_not_accepted: 409,
  confirmation_required: 409,
  not_uploaded: 409,
  upload_mismatch: 409,
  expired: 410,
  quota_exceeded: 413,
  range_not_satisfiable: 416,
  body_too_large: 413,
  unsupported_media_type: 415,
  precondition_failed: 412,
  validation_failed: 422,
  idempotency_key_reused: 422,
  module_refused: 422,
  frontend_refused: 422,
  too_many_attempts: 429,
  internal: 500,
  plugin_trapped: 502,
  plugin_error: 502,
  plugin_response_invalid: 502,
  plugin_quota_exceeded: 502,
  no_slot: 503,
  memory_budget: 503,
  quarantined: 503,
  draining: 503,
  unavailable: 503,
  deadline_exceeded: 504,
  storage_full: 507,
};

t.test('every error code has its status and a title', async t => {
  t.same(STATUS_OF, WANT);
  t.same(Object.keys(TITLE_OF).sort(), Object.keys(WANT).sort());
  const page = fs.readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| (\d{3}) \| `(\w+)` \|/gm)].map(([, status, code]) => [code, Number(status)]);
  t.same(Object.fromEntries(rows), WANT, 'the page has a row for each');
});

t.test('an error body is a problem document with the members clients rely on', async t => {
  const error = new ServiceError('validation_failed', 'limit is wrong', {
    errors: [{ pointer: '/limit', message: 'must be 1' }],
    headers: [['Allow', 'GET']],
    extra: { more: 1 },
  });
  const reply = problemReply(error, '/api/x', 'request-1');
  t.equal(reply.status, 422);
  t.match(reply.headers, [['Content-Type', /^application\/problem\+json/]]);
  t.same(JSON.parse(String(reply.body)), {
    type: 'urn:plugin-host:error:validation_failed',
    title: 'Validation failed',
    status: 422,
    detail: 'limit is wrong',
    instance: '/api/x',
    code: 'validation_failed',
    request_id: 'request-1',
    error: 'limit is wrong',
    errors: [{ pointer: '/limit', message: 'must be 1', code: 'refused' }],
    more: 1,
  });
});

t.test('any thrown value has a text in the log', async t => {
  t.equal(messageOf(new Error('no')), 'no');
  t.equal(messageOf('no'), 'no');
  t.equal(messageOf(undefined), 'undefined');
  // As the job queue reports: a copy of the error with more members.
  t.equal(messageOf({ message: 'no', queue: 'q', worker: 'w' }), 'no');
  t.equal(messageOf(new AggregateError([new Error('one'), new Error('two')])), 'one; two');
  t.equal(messageOf(Object.assign(new Error(''), { code: 'ECONNRESET' })), 'code ECONNRESET');
  t.equal(messageOf(new TypeError('')), 'TypeError');
  t.equal(messageOf({ queue: 'q' }), "{ queue: 'q' }");
});
