import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '@plugin-host/sdk/test';

test('replies with the menu of the day that was asked for', async () => {
  const host = await testHost();
  const { failure, replies } = await host.message('/menu tomorrow', { user: 7 });
  assert.equal(failure, '');
  assert.equal(replies[0]?.text, 'Here is the menu of tomorrow.');
  assert.equal([...host.files.values()][0]?.name, 'menu.txt');
});
