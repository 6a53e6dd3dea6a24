import t from 'tap';
import { openDatabase } from '../../src/db/database.ts';
import { startTestService } from '../support/service.ts';

t.test('a host without messengers queues a message again for one that has them', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  const { rows } = await db.query<{ id: string }>(
    `INSERT INTO outgoing_messages (channel, chat_id, source, message, request_id, urgent, state, ended_at)
     VALUES ('TELEGRAM', '7', 'host', '{"text":"hello","files":[]}', 'r1', true, 'failed', now()) RETURNING id`,
  );
  t.match(await s.admin('POST', `/messages/${rows[0]?.id}/retry`), { status: 200, json: { state: 'queued' } });
});
