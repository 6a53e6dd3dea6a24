import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '@plugin-host/sdk/test';

const config = { service: 'https://weather.example', key: 'a secret' };

test('asks the service with its key', async () => {
  const host = await testHost({ config, http: () => ({ body: '{"temperature":-7.5}' }) });
  const answer = await host.http('GET /places/Kazan');
  assert.equal(answer.status, 200, answer.failure);
  assert.deepEqual(answer.json, { place: 'Kazan', temperature: -7.5 });
  assert.equal(host.requests[0]?.url, 'https://weather.example/current?place=Kazan');
  assert.equal(host.requests[0]?.headers.authorization, 'Bearer a secret');
});

test('answers other plugins', async () => {
  const host = await testHost({ config, http: () => ({ body: '{"temperature":3}' }) });
  assert.deepEqual((await host.call('temperature', { place: 'Oslo' }, { from: 'menu' })).value, { temperature: 3 });
});

test('an unknown place is 404, a service that fails is 502', async () => {
  let status = 404;
  const host = await testHost({ config, http: () => ({ status }) });
  assert.equal((await host.http('GET /places/Nowhere')).status, 404);
  status = 500;
  assert.equal((await host.http('GET /places/Oslo')).status, 502);
});
