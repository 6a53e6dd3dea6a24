import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '@plugin-host/sdk/test';

const config = { moderator_key: 'a secret' };

test('keeps entries and lists them', async () => {
  const host = await testHost({ config });
  const added = await host.http('POST /entries', { body: { name: 'Ada', text: 'I was here' } });
  assert.equal(added.status, 201, added.failure);
  const { json } = await host.http('GET /entries');
  assert.deepEqual(json, { title: 'Guestbook', entries: [added.json], next: null });
});

test('removes an entry for the moderator alone', async () => {
  const host = await testHost({ config });
  const kv = { 'entry:1': '{"id":"1","name":"Ada","text":"I was here"}' };
  assert.equal((await host.http('DELETE /entries/1', { kv })).status, 403);
  assert.equal((await host.http('DELETE /entries/1', { headers: { 'X-Moderator-Key': 'a secret' } })).status, 204);
  assert.equal((await host.http('GET /entries/1')).status, 404);
});
