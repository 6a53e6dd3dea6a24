import t from 'tap';
import type { Actor } from '../../src/audit/audit-log.ts';
import { SCHEDULE, starterOf, starterText } from '../../src/university/starter.ts';

const actor = (kind: Actor['kind'], name: string): Actor => ({ kind, userId: null, name, requestId: 'r', address: '' });

t.test('what the log of imports keeps of an actor says who it was', async t => {
  t.same(starterOf(starterText(actor('admin', 'ada@uni.example'))), { kind: 'administrator', name: 'ada@uni.example' });
  t.same(starterOf(starterText(actor('admin_key', 'a "nightly" key'))), { kind: 'admin_key', name: 'a "nightly" key' });
  t.same(starterOf(starterText(actor('import_key', 'admin.api_key'))), { kind: 'import_key', name: null });
  t.same(starterOf(starterText(actor('setup', 'setup mode'))), { kind: 'setup', name: null });
  t.same(starterOf(SCHEDULE), { kind: 'schedule', name: null });
});
