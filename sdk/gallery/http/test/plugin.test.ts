import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '@plugin-host/sdk/test';

test('greets, and counts how often', async () => {
  const host = await testHost();
  await host.http('GET /greet/Ada', { user: 7 });
  const answer = await host.http('GET /greet/Ada', { user: 7 });
  assert.equal(answer.status, 200, answer.failure);
  assert.deepEqual(answer.json, { message: 'Hello, Ada!', times: 2 });
  assert.equal(host.kvText('greeted:Ada'), '2');
});

test('without the permission nothing is counted', async () => {
  const host = await testHost();
  const answer = await host.http('GET /greet/Ada', { grant: [] });
  assert.match(answer.failure, /permission denied/);
});
