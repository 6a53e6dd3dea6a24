import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '@plugin-host/sdk/test';

test('counts the lines of a file', async () => {
  const host = await testHost();
  const id = host.addFile('poem.txt', 'one\ntwo\nthree');
  const answer = await host.http('POST /lines', { user: 7, body: { file_id: id } });
  assert.deepEqual(answer.json, { name: 'poem.txt', lines: 3 });
});

test('a file that is not there is 404', async () => {
  const host = await testHost();
  assert.equal((await host.http('POST /lines', { body: { file_id: '0' } })).status, 404);
});
