import t from 'tap';
import { z } from 'zod';
import { replyWriter } from '../../src/api/contract/reply-writer.ts';

const key = z.object({
  id: z.int(),
  created_at: z.date(),
  old_sha256: z.string().nullable(),
  made_by: z.object({ user_id: z.int() }).nullable(),
  given_scopes: z.array(z.object({ plugin_id: z.string() })).optional(),
  other_values: z.record(z.string(), z.int()),
});
const write = replyWriter(key);
const at = new Date(0);

t.test('a reply has the names of its schema, at every depth', async t => {
  const written = write({
    ...{ id: 1, createdAt: at, oldSha256: null, madeBy: { userId: 7 } },
    ...{ givenScopes: [{ pluginId: 'a' }, { pluginId: 'b' }], otherValues: { innerName: 1, inner_name: 2 } },
  });
  t.strictSame(written, {
    ...{ id: 1, created_at: at, old_sha256: null, made_by: { user_id: 7 } },
    ...{ given_scopes: [{ plugin_id: 'a' }, { plugin_id: 'b' }], other_values: { innerName: 1, inner_name: 2 } },
  });
});

t.test('what the schema does not name is not answered', async t => {
  const stored = { secretSha256: 'no reader sees this', madeBy: { userId: 7, email: 'nor this' } };
  const written = write({ ...stored, id: 1, createdAt: at, oldSha256: 'x', otherValues: {} });
  t.strictSame(written, { id: 1, created_at: at, old_sha256: 'x', made_by: { user_id: 7 }, other_values: {} });
});
