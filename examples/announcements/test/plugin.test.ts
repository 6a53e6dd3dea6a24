import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '@plugin-host/sdk/test';

const order = { groups: ['g-2', 'g-1', 'g-2'], text: 'The lecture is in A-101' };

test('writes to groups, once', async () => {
  const host = await testHost();
  const sent = await host.http('POST /announcements', { user: 1, body: order });
  assert.equal(sent.status, 202, sent.failure);
  assert.deepEqual(
    host.notifications.map(n => [n.to, n.message.text]),
    [[{ students: { groups: ['g-1', 'g-2'] } }, order.text]],
  );
  const again = await host.http('POST /announcements', { user: 1, body: { ...order, groups: ['g-1', 'g-2'] } });
  assert.equal(again.status, 409, 'a second click');
  assert.equal(host.notifications.length, 1);
  const { json } = await host.http('GET /announcements', { user: 1 });
  assert.equal(json.announcements.length, 1);
  assert.deepEqual(json.announcements[0].groups, ['g-1', 'g-2']);
  assert.equal(json.announcements[0].by, 1);
});

test('says what an announcement must have', async () => {
  const host = await testHost();
  for (const body of [
    'no JSON',
    {},
    { groups: [], text: 'x' },
    { groups: ['g-1'], text: ' ' },
    { groups: [7], text: 'x' },
  ])
    assert.equal((await host.http('POST /announcements', { user: 1, body })).status, 400, JSON.stringify(body));
  assert.equal(host.notifications.length, 0);
});
