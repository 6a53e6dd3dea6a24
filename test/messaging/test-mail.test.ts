import fs from 'node:fs';
import t from 'tap';
import { startMailServer } from '../support/mail-server.ts';
import { type Json, startTestService } from '../support/service.ts';

t.test('a test mail goes the way of all mail, and is in the audit log', async t => {
  const server = await startMailServer();
  const s = await startTestService({ BOT_SMTP_HOST: '127.0.0.1', BOT_SMTP_PORT: String(server.port) });
  t.teardown(() => s.stop());
  const sent = await s.admin('POST', '/mail/test', { to: 'ada@uni.example' });
  t.match(sent, { status: 200, json: { ok: true, where: `127.0.0.1:${server.port}` } });
  t.match(await server.nth(0), { to: ['ada@uni.example'], subject: /Test mail/, text: /\/admin\// });
  await server.close();
  const failed = await s.admin('POST', '/mail/test', { to: 'ada@uni.example' });
  t.match(failed, { status: 200, json: { ok: false, error: /ECONNREFUSED/ } });
  const wrong = await s.admin('POST', '/mail/test', { to: 'ada' });
  t.match(wrong, { status: 422, json: { errors: [{ pointer: '/to' }] } });
  const log = await s.admin('GET', '/audit?action=mail.test');
  t.same(
    (log.json.items as Json[]).map(e => e.after),
    [{ to: 'ada@uni.example' }, { to: 'ada@uni.example' }],
  );
});

t.test('without a mail server it says which file the mail is in', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const sent = await s.admin('POST', '/mail/test', { to: 'ada@uni.example' });
  t.match(fs.readFileSync(String(sent.json.where), 'utf8'), /To: ada@uni\.example/);
});
