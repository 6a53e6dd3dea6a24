import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '@plugin-host/sdk/test';

test('greets the name in the query, and echoes the request', async () => {
  const host = await testHost();
  const answer = await host.http('POST /greet?name=Ada', { body: 'a body' });
  assert.equal(answer.status, 200, answer.failure);
  assert.deepEqual(answer.json, {
    message: 'Hello, Ada!',
    method: 'POST',
    path: '/greet',
    query: { name: 'Ada' },
    body: 'a body',
    principal: null,
  });
});

test('greets the name in the path, and tells for whom the host has let the request in', async () => {
  const host = await testHost();
  const { json } = await host.http('GET /greet/Grace', { user: 7 });
  assert.equal(json.message, 'Hello, Grace!');
  assert.deepEqual(json.principal, { kind: 'user', user_id: 7, service_key_id: 0 });
});
