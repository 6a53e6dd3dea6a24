import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '@plugin-host/sdk/test';

// plugin test has no database; plugin dev has one.
test('says which ids students have', async () => {
  const host = await testHost();
  const answer = await host.http('GET /students/ada');
  assert.deepEqual([answer.status, answer.json], [400, { error: "the student's id must be a number above 0" }]);
});

test('says when there is no database', async () => {
  const host = await testHost();
  const answer = await host.http('GET /students/7');
  assert.equal(answer.status, 503, answer.failure);
});
