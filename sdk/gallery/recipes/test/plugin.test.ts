import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '@plugin-host/sdk/test';

const config = { service: 'https://weather.example', key: 'a secret' };

test('a seat goes to one person, who may give it back', async () => {
  const host = await testHost({ config });
  assert.equal((await host.http('POST /seats/3')).status, 401);
  assert.equal((await host.http('POST /seats/3', { user: 7 })).status, 201);
  const second = await host.http('POST /seats/3', { user: 8 });
  assert.deepEqual([second.status, second.json], [409, { error: 'the seat is taken' }]);
  assert.equal((await host.http('POST /seats/3/release', { user: 8 })).status, 409);
  assert.deepEqual((await host.http('GET /seats')).json, { seats: [{ key: 'seat:3', user: '7' }], next: '' });
  assert.equal((await host.http('POST /seats/3/release', { user: 7 })).status, 204);
  assert.equal((await host.http('POST /seats/3', { user: 8 })).status, 201);
  assert.deepEqual((await host.call('free', { seat: 3 })).value, { free: false });
});

test('asks the weather service with its key', async () => {
  const host = await testHost({ config, http: () => ({ body: '{"temperature":-7.5}' }) });
  const answer = await host.http('GET /weather/Kazan');
  assert.deepEqual(answer.json, { temperature: -7.5 }, answer.failure);
  assert.equal(host.requests[0]?.headers.authorization, 'Bearer a secret');
});

test('counts the lines of an upload', async () => {
  const host = await testHost({ config });
  const id = host.addFile('poem.txt', 'one\ntwo\n');
  const answer = await host.http('POST /lines', { user: 7, body: { file_id: id } });
  assert.deepEqual(answer.json, { name: 'poem.txt', lines: 2 }, answer.failure);
});

test('replies to a command with a file, and sees the files that came along', async () => {
  const host = await testHost({ config });
  const photo = host.addFile('dish.jpg', 'a photo', { file_type: 'photo' });
  const { failure, logs, replies } = await host.message('/dishes tomorrow', { files: [photo] });
  assert.equal(failure, '');
  assert.equal(replies[0]?.text, 'The dishes of tomorrow');
  assert.equal(replies[0]?.files[0]?.caption, 'Dishes');
  assert.equal(logs[0]?.text, 'dish.jpg came along, 7 bytes');
});

test('says what the other plugin could not do', async () => {
  const host = await testHost({ config });
  const answer = await host.http('GET /outside/Oslo');
  assert.equal(answer.status, 503, answer.failure);
  assert.match(answer.logs[0]?.text ?? '', /^weather: /);
});
