import os from 'node:os';
import t from 'tap';
import { diskFullError, fullDiskOf, lackOfSpace } from '../../src/base/disk-space.ts';
import { openDatabase } from '../../src/db/database.ts';
import { startTestService } from '../support/service.ts';

t.test('the error for a full disk names which disk it is', t => {
  const fails = (code: string): Error => Object.assign(new Error('x'), { code });
  t.equal(fullDiskOf(fails('53100')), 'the disk of the database');
  t.equal(fullDiskOf(fails('ENOSPC')), 'the disk of the data directory');
  t.equal(fullDiskOf(fails('EDQUOT')), 'the disk of the data directory');
  t.equal(fullDiskOf(fails('ENOENT')), null);
  t.match(diskFullError('the disk of the database', null), { code: 'storage_full', message: /free some space/ });
  t.equal(lackOfSpace(os.tmpdir(), 0), null);
  t.match(lackOfSpace(os.tmpdir(), 2 ** 40), /has \d+ MB free; data\.min_free_mb requires 1099511627776 MB/);
  t.end();
});

t.test('/readyz says that the disk is full', async t => {
  const s = await startTestService({ BOT_DATA_MIN_FREE_MB: '1099511627776' });
  t.teardown(() => s.stop());
  const response = await fetch(`${s.base}/readyz`);
  t.equal(response.status, 503);
  t.match(await response.json(), { status: 'unavailable', reason: /data\.min_free_mb requires/ });
});

t.test('a write to a full database disk gets 507 that names the disk', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  await db.query(
    "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$; CREATE TRIGGER no_room BEFORE INSERT ON event_subscriptions FOR EACH ROW EXECUTE FUNCTION no_room()",
  );
  t.match(await s.admin('POST', '/events/subscriptions', { name: 'n', url: 'https://a.example/' }), {
    status: 507,
    json: { code: 'storage_full', detail: 'the disk of the database is full; an operator must free some space' },
  });
});
