import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '@plugin-host/sdk/test';

test('takes over a file, which a later one replaces', async () => {
  const host = await testHost({ config: { tasks: 'algebra-3, essay' } });
  const essay = host.addFile('essay.txt', 'one two three');
  const done = await host.http('POST /tasks/algebra-3/files', { user: 7, body: { file_id: essay } });
  assert.deepEqual([done.status, done.json], [201, { task: 'algebra-3', name: 'essay.txt', size: 13 }], done.failure);
  const better = host.addFile('better.txt', 'four');
  await host.http('POST /tasks/algebra-3/files', { user: 7, body: { file_id: better } });
  const mine = await host.http('GET /mine', { user: 7 });
  assert.equal(mine.json.handed_in.length, 1);
  assert.equal(mine.json.handed_in[0].name, 'better.txt');
  assert.deepEqual((await host.http('GET /mine', { user: 8 })).json, { tasks: ['algebra-3', 'essay'], handed_in: [] });
  const task = await host.http('GET /tasks/algebra-3', { user: 1 });
  assert.equal(task.json.files.length, 1);
  assert.equal(task.json.files[0].user, 7);
  assert.equal(task.json.files[0].name, 'better.txt');
});

test('takes a task twenty times', async () => {
  const host = await testHost({ config: { tasks: 'algebra-3' } });
  const file_id = host.addFile('essay.txt', 'x');
  const hand = (user: number) => host.http('POST /tasks/algebra-3/files', { user, body: { file_id } });
  for (let n = 0; n < 20; n++) assert.equal((await hand(7)).status, 201);
  assert.deepEqual((await hand(7)).json, { error: 'this task was handed in 20 times' });
  assert.equal((await hand(8)).status, 201);
});

test('says what is wrong', async () => {
  const host = await testHost({ config: { tasks: 'algebra-3, essay' } });
  const file = host.addFile('essay.txt', 'x');
  const hand = (task: string, body: unknown) => host.http(`POST /tasks/${task}/files`, { user: 7, body });
  assert.equal((await hand('algebra-4', { file_id: file })).status, 404);
  assert.equal((await hand('algebra-3', { file_id: '0'.repeat(32) })).status, 400);
  assert.equal((await hand('algebra-3', 'no JSON')).status, 400);
  const large = host.addFile('large.bin', new Uint8Array(8 * 2 ** 20 + 1));
  assert.equal((await hand('algebra-3', { file_id: large })).status, 413);
  assert.equal((await host.http('GET /mine')).status, 401);
});
