import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '@plugin-host/sdk/test';

const WEBHOOK = 'https://chat.example/hooks/secret';
const config = { webhook: WEBHOOK };
const send = (text: string) => ({ serviceKey: 1, body: { text } });

test('passes an event on, and publishes it', async () => {
  const host = await testHost({ config, http: () => ({ status: 200 }) });
  const answer = await host.http('POST /events/exam.moved', send('Algebra is on Friday'));
  assert.deepEqual([answer.status, answer.json], [200, { waiting: 0 }], answer.failure);
  assert.deepEqual(host.events, [{ name: 'exam.moved', payload: { text: 'Algebra is on Friday' } }]);
  const [request] = host.requests;
  assert.equal(request?.url, WEBHOOK);
  assert.deepEqual(JSON.parse(Buffer.from(request.body).toString()), { text: 'exam.moved: Algebra is on Friday' });
});

test('keeps what the chat does not take, and sends it in its order', async () => {
  let status = 503;
  const texts: string[] = [];
  const host = await testHost({
    config,
    http({ body }) {
      if (status === 200) texts.push(JSON.parse(Buffer.from(body).toString()).text);
      return { status };
    },
  });
  assert.deepEqual((await host.http('POST /events/a', send('first'))).json, { waiting: 1 });
  const second = await host.http('POST /events/a', send('second'));
  assert.deepEqual([second.status, second.json], [202, { waiting: 2 }]);
  status = 200;
  assert.deepEqual((await host.http('POST /events/a', send('third'))).json, { waiting: 0 });
  assert.deepEqual(texts, ['a: first', 'a: second', 'a: third']);
});

test('drops what the chat refuses for good', async () => {
  const host = await testHost({ config, http: () => ({ status: 400 }) });
  const answer = await host.http('POST /events/a', send('too odd'));
  assert.deepEqual(answer.json, { waiting: 0 });
  assert.match(answer.logs[0]?.text ?? '', /the chat answers 400/);
});

test('other plugins announce', async () => {
  const host = await testHost({ config, http: () => ({ status: 200 }) });
  assert.deepEqual((await host.call('announce', { type: 'book.due', text: 'Optics' })).value, { waiting: 0 });
  assert.match((await host.call('announce', { text: 'Optics' })).failure, /call it with/);
});

test('says what a request must have', async () => {
  const host = await testHost({ config });
  assert.equal((await host.http('POST /events/a', { serviceKey: 1, body: 'no JSON' })).status, 400);
});
