import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { makeDatabase } from '../support/database.ts';
import { ROOT, start } from '../support/started-service.ts';
import { databaseWay } from '../support/store-way.ts';

t.test('a service that starts before its database waits for it, and says so', async t => {
  const database = await makeDatabase();
  const way = await databaseWay(database.url);
  way.cut();
  const directory = fs.mkdtempSync(path.join(ROOT, 'late-'));
  const run = start(directory, { BOT_HTTP_PORT: '0', BOT_DATABASE_URL: way.url });
  t.teardown(async () => {
    run.child.kill('SIGTERM');
    await run.exited;
    way.close();
    await database.drop();
  });
  await run.until(
    new RegExp(`database at 127.0.0.1:${way.port} does not answer: .*; waiting up to 60 s.*database.start_wait`),
  );
  way.mend();
  await run.until(/plugin host is ready/);
});

t.test('a service that waits for its database stops at a signal', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'never-'));
  const run = start(directory, { BOT_HTTP_PORT: '0', BOT_DATABASE_URL: 'postgresql://u:p@127.0.0.1:1/x' });
  await run.until(/waiting up to 60 s/);
  run.child.kill('SIGTERM');
  t.equal(await run.exited, 0);
});
