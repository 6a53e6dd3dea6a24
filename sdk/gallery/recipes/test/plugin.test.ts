import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from 'plugin-host/test';

const config = { service: 'https://weather.example', key: 'a secret' };

test('a seat goes to one person, who may pass it on', async () => {
  const host = await testHost({ config });
  assert.equal((await host.http('POST /seats/3?name=Ada')).status, 201);
  const second = await host.http('POST /seats/3?name=Grace');
  assert.deepEqual([second.status, second.json], [409, { error: 'Ada has this seat' }]);
  assert.equal((await host.http('POST /seats/3/pass?from=Grace&to=Eva')).status, 409);
  assert.equal((await host.http('POST /seats/3/pass?from=Ada&to=Eva')).status, 200);
  assert.deepEqual((await host.http('GET /seats')).json, { seats: [{ key: 'seat:3', name: 'Eva' }], next: '' });
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

test('replies to a command with a file, and thanks for photos', async () => {
  const host = await testHost({ config });
  const photo = host.addFile('dish.jpg', 'a photo', { file_type: 'photo' });
  const { failure, replies } = await host.message('/dishes tomorrow', { files: [photo] });
  assert.equal(failure, '');
  assert.equal(replies[0]?.text, 'The dishes of tomorrow');
  assert.deepEqual(
    replies[0]?.files.map(f => f.caption),
    ['Dishes', 'Thank you'],
  );
});

test('says what the other plugin could not do', async () => {
  const host = await testHost({ config });
  const answer = await host.http('GET /outside/Oslo');
  assert.equal(answer.status, 503, answer.failure);
  assert.match(answer.logs[0]?.text ?? '', /^weather: /);
});
