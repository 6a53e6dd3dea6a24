import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '@plugin-host/sdk/test';

test('gives a slot to one person', async () => {
  const host = await testHost();
  const booked = await host.http('POST /slots/3', { body: { name: 'Ada' } });
  assert.equal(booked.status, 201, booked.failure);
  assert.deepEqual(booked.json, { slot: 3, booked_by: 'Ada' });
  const second = await host.http('POST /slots/3', { body: { name: 'Grace' } });
  assert.deepEqual([second.status, second.json], [409, { error: 'slot 3 is booked' }]);
  const { json } = await host.http('GET /slots');
  assert.equal(json.booked, 1);
  assert.deepEqual(json.slots[2], { slot: 3, booked_by: 'Ada' });
});

test('a slot that was given up can be booked again', async () => {
  const host = await testHost();
  await host.http('POST /slots/3', { body: { name: 'Ada' } });
  assert.equal((await host.http('DELETE /slots/3', { body: { name: 'Grace' } })).status, 409);
  assert.equal((await host.http('DELETE /slots/3', { body: { name: 'Ada' } })).status, 200);
  assert.equal((await host.http('POST /slots/3', { body: { name: 'Grace' } })).status, 201);
});
