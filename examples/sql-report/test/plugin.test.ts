import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '@plugin-host/sdk/test';

// plugin test has no database; plugin dev has one.
test('says when there is no database', async () => {
  const host = await testHost({ config: { title: 'Groups', query: 'SELECT 1' } });
  const answer = await host.http('GET /report', { user: 1 });
  assert.equal(answer.status, 503, answer.failure);
});
