import { createHash } from 'node:crypto';
import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { CookieJar } from '../support/identity-provider.ts';
import { ROOT_EMAIL, ROOT_PASSWORD } from '../support/root-admin.ts';
import { type Answer, NAVIGATION, rawRequest, startTestService, TOKEN } from '../support/service.ts';
import { okPlugin } from '../support/wat.ts';

/** The way of a session to the origin of a plugin, step by step (docs/SECURITY.md "An origin for each plugin"). */
const HOST = 'uni.example.org';
const s = await startTestService({
  BOT_HTTP_PUBLIC_URL: `https://${HOST}`,
  BOT_PLUGINS_ORIGIN: 'https://*.plugins.example.org',
});
t.teardown(() => s.stop());
const db = openDatabase(s.databaseUrl, 2, () => {});
t.teardown(() => db.close());
for (const id of ['one', 'other']) await s.install(okPlugin(id));
const user = new CookieJar();
const made = await rawRequest(
  `${s.base}/api/admin/auth/setup`,
  { host: HOST, authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
  'POST',
  JSON.stringify({ email: ROOT_EMAIL, password: ROOT_PASSWORD }),
);
user.take(made.headers);

const PATH = '/api/auth/plugin-session';
const SECRET = 'a secret that the browser keeps';
const STATE = createHash('sha256').update(SECRET).digest('hex');
const askCode = (plugin: string, headers: Record<string, string>): Promise<Answer> =>
  rawRequest(`${s.base}${PATH}?plugin=${plugin}&state=${STATE}&return_to=/x`, { host: HOST, ...headers });
const codeIn = (a: Answer): string =>
  new URL(a.headers.get('location') ?? '/', 'https://x').searchParams.get('code') ?? '';
const finish = (plugin: string, code: string, secret = SECRET): Promise<Answer> =>
  rawRequest(`${s.base}${PATH}/finish?code=${code}&return_to=/x`, {
    host: `${plugin}.plugins.example.org`,
    cookie: `__Secure-plugin_login=${secret}`,
  });

t.test('a code makes one session, in the browser and for the plugin it was made for, within a minute', async t => {
  const asked = await askCode('one', { ...NAVIGATION, ...user.header });
  t.equal(asked.status, 302);
  const code = codeIn(asked);
  t.match(code, /^[\w-]{43}$/);
  t.equal((await finish('other', code)).status, 400, 'at another plugin');
  t.equal((await finish('one', codeIn(await askCode('one', { ...NAVIGATION, ...user.header })), 'guess')).status, 400);
  const late = codeIn(await askCode('one', { ...NAVIGATION, ...user.header }));
  await db.query("UPDATE plugin_logins SET expires_at = expires_at - interval '61 seconds'");
  t.equal((await finish('one', late)).status, 400, 'a minute later');
  const again = codeIn(await askCode('one', { ...NAVIGATION, ...user.header }));
  const session = await finish('one', again);
  t.match(session.headers.getSetCookie()[0], /^__Host-user_session=h\.[\w-]{43}; Path=\/;.*; Secure$/);
  t.equal((await finish('one', again)).status, 400, 'a second time');

  const jar = new CookieJar();
  jar.take(session.headers);
  const elsewhere = await askCode('other', { ...NAVIGATION, ...jar.header });
  t.match(elsewhere.headers.get('location') ?? '', /^(?!.*code=)/, 'a session of one plugin makes none of another');
});

t.test('a page fetches no code: a browser goes there', async t => {
  for (const mode of ['cors', 'no-cors', 'same-origin', 'websocket'])
    t.equal((await askCode('one', { ...user.header, 'sec-fetch-mode': mode })).status, 403, mode);
  t.equal((await askCode('one', { ...NAVIGATION, ...user.header, host: 'one.plugins.example.org' })).status, 404);
});
