import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '@plugin-host/sdk/test';

test('keeps files of a user, and shows them to no other', async () => {
  const host = await testHost();
  const id = host.addFile('poem.txt', 'one two three');
  const added = await host.http('POST /files', { user: 7, body: { file_id: id } });
  assert.equal(added.status, 201, added.failure);
  const ref = { id, name: 'poem.txt', mime_type: 'text/plain', size: 13, file_type: 'document' };
  assert.deepEqual((await host.http('GET /files', { user: 7 })).json, { files: [ref] });
  assert.equal((await host.http(`GET /files/${id}`, { user: 7 })).text, 'one two three');
  assert.deepEqual((await host.http('GET /files', { user: 8 })).json, { files: [] });
  assert.equal((await host.http(`GET /files/${id}`, { user: 8 })).status, 404);
  assert.equal((await host.http('GET /files')).status, 401);
});

test('stores a note as a file, and takes it out of the box', async () => {
  const host = await testHost();
  const note = await host.http('POST /notes', { user: 7, body: { name: 'note.txt', text: 'buy milk' } });
  assert.equal(note.status, 201, note.failure);
  assert.equal((await host.http(`GET /files/${note.json.id}`, { user: 7 })).text, 'buy milk');
  assert.equal((await host.http(`DELETE /files/${note.json.id}`, { user: 7 })).status, 204);
  assert.deepEqual((await host.http('GET /files', { user: 7 })).json, { files: [] });
});

test('computes a checksum over chunks', async () => {
  const host = await testHost();
  const id = host.addFile('long.txt', 'x'.repeat(2 ** 20 + 5));
  await host.http('POST /files', { user: 7, body: { file_id: id } });
  const { json } = await host.http(`GET /files/${id}/checksum`, { user: 7 });
  assert.equal(json.offset, 2 ** 20 + 5);
  assert.equal(json.eof, true);
});
