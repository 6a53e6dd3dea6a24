import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '@plugin-host/sdk/test';

// plugin test has no database; plugin dev has one.
test('asks for a login', async () => {
  const host = await testHost();
  assert.equal((await host.http('GET /notes')).status, 401);
});
