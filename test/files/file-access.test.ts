import t from 'tap';
import { type FileAsker, mayRead } from '../../src/files/file-access.ts';
import type { FileRecord } from '../../src/files/file-records.ts';
import { askerOf } from '../../src/host/files.ts';
import type { PermittedCall } from '../../src/host/host-functions.ts';

/** Which execution may read which file, written out. */
const NOW = 1_000_000;
const file = (more: Partial<FileRecord>): FileRecord => ({
  id: 'f',
  name: 'n',
  mimeType: 'text/plain',
  fileType: 'document',
  pluginId: 'one',
  userId: null,
  chat: null,
  size: 1,
  state: 'ready',
  store: 'disk',
  digest: 'd',
  cancelled: false,
  createdAt: new Date(0),
  expiresAt: null,
  ...more,
});
const asker = (more: Partial<FileAsker>): FileAsker => ({
  pluginId: 'one',
  kind: 'http',
  userId: null,
  chat: null,
  ...more,
});
const ADA = 7;
const inChat = (chat: string | null, userId: number | null = ADA) => asker({ kind: 'messenger', chat, userId });

t.test(
  'a file is read by the plugin it belongs to, for the user or in the chat it came from, while it is there',
  async t => {
    const own = file({});
    const uploaded = file({ userId: ADA });
    const sent = file({ userId: ADA, chat: 'TELEGRAM:11' });
    const rows: Array<[string, FileRecord, FileAsker, boolean]> = [
      ['own file, anywhere', own, asker({}), true],
      ['own file, in a chat', own, inChat('VK:1'), true],
      ['own file, called by a plugin', own, asker({ kind: 'call' }), true],
      ['own file of another plugin', own, asker({ pluginId: 'two' }), false],
      ['upload, its user', uploaded, asker({ userId: ADA }), true],
      ['upload, its user, another plugin', uploaded, asker({ userId: ADA, pluginId: 'two' }), false],
      ['upload, another user', uploaded, asker({ userId: 8 }), false],
      ['upload, no caller', uploaded, asker({}), false],
      ['upload, its user in a chat', uploaded, inChat('TELEGRAM:11'), false],
      ['upload, its user, called by a plugin', uploaded, asker({ userId: ADA, kind: 'call' }), false],
      ['message, its chat', sent, inChat('TELEGRAM:11'), true],
      ['message, its chat, another member', sent, inChat('TELEGRAM:11', 8), true],
      ['message, another chat of its user', sent, inChat('TELEGRAM:12'), false],
      ['message, the chat of that number elsewhere', sent, inChat('VK:11'), false],
      ['message, no chat', sent, inChat(null), false],
      ['message, its user over HTTP', sent, asker({ userId: ADA }), false],
      ['message, its chat, over HTTP', sent, asker({ userId: ADA, chat: 'TELEGRAM:11' }), false],
      ['message, its chat, called by a plugin', sent, asker({ kind: 'call', chat: 'TELEGRAM:11' }), false],
      ['message of an unknown sender, no chat', file({ chat: 'TELEGRAM:11' }), asker({}), false],
      ['pending', file({ state: 'pending' }), asker({}), false],
      ['deleted', file({ state: 'deleted' }), asker({}), false],
      ['its time has come', file({ expiresAt: new Date(NOW) }), asker({}), false],
      ['its time comes', file({ expiresAt: new Date(NOW + 1) }), asker({}), true],
    ];
    for (const [name, record, who, want] of rows) t.equal(mayRead(record, who, NOW), want, name);
  },
);

t.test('an execution reads for its plugin, its user and the chat of its message', async t => {
  const call = { plugin: { id: 'one' }, kind: 'messenger', userId: ADA, message: { chat: 'VK:2' } };
  t.same(askerOf(call as unknown as PermittedCall), inChat('VK:2'));
  t.same(askerOf({ ...call, kind: 'http', message: null } as unknown as PermittedCall), asker({ userId: ADA }));
});
