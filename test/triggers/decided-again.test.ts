import { once } from 'node:events';
import net from 'node:net';
import t from 'tap';
import { startTestService } from '../support/service.ts';
import { okPlugin, watPlugin } from '../support/wat.ts';

const s = await startTestService({ BOT_EXECUTION_LANES: '1' });
t.teardown(() => s.stop());
const port = Number(new URL(s.base).port);

/** A request whose body comes later. */
async function begin(path: string, authorization: string, bytes: number): Promise<(body: string) => Promise<string>> {
  const client = net.connect(port, '127.0.0.1');
  let answer = '';
  client.on('data', (c: Buffer) => (answer += c.toString()));
  const closed = new Promise(resolve => client.once('close', resolve));
  await once(client, 'connect');
  client.write(
    `POST /api/triggers/http/${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Length: ${bytes}\r\nConnection: close\r\n\r\n`,
  );
  return async body => {
    client.write(body);
    await closed;
    return answer.split('\r\n')[0] ?? '';
  };
}

t.test('what was decided before a body came is decided again behind it', async t => {
  await s.install(okPlugin('slow'), {}, 'default');
  const settings = (change: Record<string, unknown>) =>
    s.admin('PUT', '/plugins/slow/triggers/run/settings', change as Record<string, boolean>);
  await settings({ allow_service_key: true });
  const made = await s.admin('POST', '/service-keys', { name: 'k', scopes: [{ plugin_id: 'slow', trigger: 'run' }] });
  const key = `Bearer ${made.json.key}`;
  const whole = await begin('slow/run', key, 4);
  t.match(await whole('body'), /^HTTP\/1\.1 200 /);
  const changes: Array<[string, () => Promise<unknown>, RegExp]> = [
    ['service keys are not let in any more', () => settings({ allow_service_key: false }), /^HTTP\/1\.1 403 /],
    ['the key is revoked', () => s.admin('DELETE', `/service-keys/${made.json.id}`), /^HTTP\/1\.1 401 /],
  ];
  for (const [what, change, line] of changes) {
    await settings({ allow_service_key: true });
    const finish = await begin('slow/run', key, 4);
    // The first decision is made when the head has come.
    await new Promise(resolve => setTimeout(resolve, 100));
    await change();
    t.match(await finish('body'), line, what);
  }
});

t.test('headers that were checked for one plugin are checked for another', async t => {
  const challenge =
    '{\\22Content-Type\\22:\\22text/plain\\22,\\22WWW-Authenticate\\22:\\22Basic realm=\\5c\\22one\\5c\\22\\22}';
  const length = 70;
  for (const id of ['one', 'two'])
    await s.install(
      watPlugin({
        id,
        imports: ['respond'],
        body: `(data (i32.const 64) "${challenge}")`,
        handle: `(drop (call $respond (i32.const 401) (i32.const 64) (i32.const ${length}) (i32.const 0) (i32.const 0))) (i32.const 0)`,
      }),
    );
  const own = await s.trigger('one/run');
  t.match([own.status, own.headers.get('www-authenticate')], [401, 'Basic realm="one"'], own.text);
  const foreign = await s.trigger('two/run');
  t.match([foreign.status, foreign.headers.get('www-authenticate')], [401, null], 'no realm of another plugin');
});

t.test('a record is found at its own plugin alone', async t => {
  await s.install(watPlugin({ id: 'traps', handle: '(unreachable)' }));
  t.equal((await s.trigger('traps/run')).status, 502);
  let id: unknown;
  for (let k = 0; k < 200 && id === undefined; k++) {
    const { json } = await s.admin('GET', '/plugins/traps/executions');
    id = (json.items as Array<{ id: number }>)[0]?.id;
    await new Promise(resolve => setTimeout(resolve, 20));
  }
  t.equal((await s.admin('GET', `/plugins/traps/executions/${id}`)).status, 200);
  t.equal((await s.admin('GET', `/plugins/one/executions/${id}`)).status, 404);
});
