import http from 'node:http';
import t from 'tap';
import { resetPasswordHere } from '../../src/identity/admin-appointments.ts';
import { ROOT_EMAIL, startWithRoot } from '../support/root-admin.ts';
import { request } from '../support/service.ts';

/** A credential may end while a body is on its way (docs/SECURITY.md "A session that ends while a request is held back"). */

const ACTOR = { kind: 'command_line', userId: null, name: 'operator', requestId: '', address: '' } as const;
const EXPIRES = new Date(Date.now() + 86_400_000).toISOString();

type Answered = { status: number; text: string };

/** Sends the head and the first bytes of a body; the rest when it is asked for. Ready when the service has the request. */
async function holdBack(url: string, headers: Record<string, string>, body: string, type = 'application/json') {
  const sent = http.request(url, {
    method: 'POST',
    agent: false,
    headers: { ...headers, 'content-type': type, 'content-length': String(Buffer.byteLength(body)) },
  });
  const answer = new Promise<Answered>((resolve, reject) => {
    sent.on('error', reject);
    sent.on('response', async response => {
      let text = '';
      for await (const chunk of response) text += String(chunk);
      resolve({ status: response.statusCode ?? 0, text });
    });
  });
  await new Promise<void>((resolve, reject) => {
    sent.on('error', reject);
    sent.write(body.slice(0, 5), () => resolve());
  });
  return async (): Promise<Answered> => {
    sent.end(body.slice(5));
    return await answer;
  };
}

t.test('a request whose body comes after its credential has ended makes nothing', async t => {
  const w = await startWithRoot(t);
  const boundary = 'part';
  const module = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="x.wasm"\r\n\r\nx\r\n--${boundary}--\r\n`;
  const finish = [
    await holdBack(`${w.s.base}/api/auth/tokens`, w.root, JSON.stringify({ name: 'late', expires_at: EXPIRES })),
    await holdBack(
      `${w.s.base}/api/admin/keys`,
      w.root,
      JSON.stringify({ name: 'late', scopes: ['admin'], expires_at: EXPIRES }),
    ),
    await holdBack(
      `${w.s.base}/api/admin/service-keys`,
      w.root,
      JSON.stringify({ name: 'late', scopes: [{ plugin_id: 'x', trigger: '*' }] }),
    ),
    await holdBack(`${w.s.base}/api/admin/university/persons`, w.root, '[{"external_id": "late"}]'),
    await holdBack(`${w.s.base}/api/admin/plugins/upload`, w.root, module, `multipart/form-data; boundary=${boundary}`),
  ];
  // Each of them is let in before these, which came behind them, are answered.
  for (let k = 0; k < 5; k++) t.equal((await w.call(w.root, 'GET', '/plugins')).status, 200);
  await resetPasswordHere(w.db, ROOT_EMAIL, ACTOR);
  t.equal((await w.call(w.root, 'GET', '/plugins')).status, 401, 'the session has ended');
  for (const answer of await Promise.all(finish.map(end => end()))) t.equal(answer.status, 401, answer.text);
  for (const table of ['user_tokens', 'admin_keys', 'service_keys', 'persons', 'plugin_versions'])
    t.same((await w.db.query(`SELECT 1 FROM ${table}`)).rows, [], table);
});

t.test('a body that is slow for another reason is taken', async t => {
  const w = await startWithRoot(t);
  const end = await holdBack(
    `${w.s.base}/api/admin/keys`,
    w.root,
    JSON.stringify({ name: 'slow', scopes: ['read'], expires_at: EXPIRES }),
  );
  t.equal((await w.call(w.root, 'GET', '/plugins')).status, 200);
  const made = await end();
  t.equal(made.status, 201, made.text);
  const { key } = JSON.parse(made.text) as { key: string };
  const headers = { authorization: `Bearer ${key}` };
  t.equal((await request(`${w.s.base}/api/admin/plugins`, { headers })).status, 200);
});
