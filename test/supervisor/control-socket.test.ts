import { once } from 'node:events';
import net from 'node:net';
import path from 'node:path';
import t from 'tap';
import { openControlSocket } from '../../src/supervisor/handover/control-socket.ts';

/** The socket for commands (docs/SECURITY.md "A supervisor that runs as root"): one command, and little else is read. */
const asked: Array<string | null> = [];
const directory = t.testdir({});
const socket = await openControlSocket(directory, {
  reload: async (_, file) => void asked.push(file),
});
t.teardown(() => socket.close());

/** Sends a text. @returns all that was answered until the connection ended */
async function send(text: string): Promise<string> {
  const client = net.connect(path.join(directory, 'supervisor.sock'));
  let answer = '';
  client.on('error', () => {});
  client.on('data', (c: Buffer) => (answer += c.toString()));
  await once(client, 'connect');
  const closed = new Promise(resolve => client.once('close', resolve));
  client.write(text);
  await closed;
  return answer;
}

t.test('a command that is known is done', async t => {
  t.match(JSON.parse(await send('{"command":"reload","file":"/etc/x.yaml"}\n')), { done: true });
  t.same(asked.splice(0), ['/etc/x.yaml']);
});

t.test('any other text does nothing', async t => {
  for (const text of ['reload', '{}', '{"command":"stop"}', '[]', 'null', '{"command":"reload","file":7}'])
    t.match(JSON.parse(await send(`${text}\n`)), { error: /knows the command "reload" alone/ }, text);
  t.same(asked, []);
});

t.test('a request without an end is cut off', async t => {
  t.equal(await send('x'.repeat(2 ** 20)), '');
  t.same(asked, []);
});
