import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '@plugin-host/sdk/test';

test('replies with the dishes, the temperature, and files', async () => {
  const host = await testHost({
    config: { dishes: 'soup; cake', place: 'Oslo' },
    plugins: { weather: { temperature: () => ({ temperature: 3 }) } },
  });
  const picture = host.addFile('dish.jpg', 'a picture', { mime_type: 'image/jpeg', file_type: 'photo' });
  const { failure, replies } = await host.message('/menu', { files: [picture] });
  assert.equal(failure, '');
  assert.equal(replies[0]?.text, 'Today in the canteen:\n- soup\n- cake\nOutside: 3 C');
  const sent = replies[0]?.files.map(f => [f.file.name, f.caption]);
  assert.deepEqual(sent, [
    ['menu.txt', 'The menu'],
    ['dish.jpg', 'Thank you for the picture'],
  ]);
  const menu = [...host.files.values()].find(f => f.name === 'menu.txt');
  assert.equal(Buffer.from(menu?.bytes ?? '').toString(), 'soup\ncake\n');
});

test('without the weather there is a menu all the same', async () => {
  const host = await testHost({ config: { dishes: 'soup', place: 'Oslo' } });
  const { logs, replies } = await host.message('/menu');
  assert.equal(replies[0]?.text, 'Today in the canteen:\n- soup');
  assert.match(logs[0]?.text ?? '', /^weather: /);
});
