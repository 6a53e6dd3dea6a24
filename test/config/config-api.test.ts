import t from 'tap';
import { type Json, startTestService } from '../support/service.ts';

t.test('administrators read the configuration with its sources, and no secret', async t => {
  const s = await startTestService({
    BOT_SMTP_PASSWORD: 'hunter2',
    BOT_S3_ENDPOINT: 'https://us:hunter2@s3.example.org/x',
  });
  t.teardown(() => s.stop());
  const answer = await s.admin('GET', '/config');
  t.equal(answer.status, 200);
  t.notMatch(answer.text, /hunter2/);
  t.notMatch(answer.text, new RegExp(new URL(s.databaseUrl).pathname), 'the address of the database is a secret');
  const settings = new Map((answer.json.settings as Json[]).map(x => [x.key, x]));
  t.match(settings.get('smtp.password'), {
    value: null,
    is_secret: true,
    is_set: true,
    source: 'env',
    env: 'BOT_SMTP_PASSWORD',
    about: /password/,
  });
  t.match(settings.get('idp.client_secret'), { is_secret: true, is_set: false, source: 'default' });
  t.match(settings.get('execution.lanes'), { value: 2, default: 16, source: 'env' });
  t.equal(settings.get('smtp.password')?.default, null);
  t.match(settings.get('http.trusted_proxies'), { value: [], source: 'default', is_set: false });
  t.equal(settings.get('s3.endpoint')?.value, 'https://(hidden)@s3.example.org/x');
  t.equal((answer.json.limits as Json).executionMsMax, 5000);
});
