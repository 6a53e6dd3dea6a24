import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { buildPlugin } from '../../../sdk/typescript/build.ts';
import { readRecording, replay } from '../../../src/authors/replay.ts';
import { startAdminBrowser } from '../../support/admin-browser.ts';

/** A failure of last night is looked at in the page, and run again without the service. */

const SOURCE = `import { type Context, definePlugin, KV, TriggerHTTP } from '@plugin-host/sdk';
definePlugin({
  ID: 'seats', Name: 'Seats', Version: '1.0.0',
  Requirements: [KV('Seats that are taken').Build()],
  Triggers: [{ Name: 'take', Type: TriggerHTTP, Path: '/seats/:seat', Methods: ['POST'], Handler: take }],
});
function take(ctx: Context): void {
  const owner = ctx.KVGet('seat:' + ctx.HTTP.Params.seat);
  ctx.JSON(200, { taken: owner!.length > 0 });
}
`;

async function built(t: Test, source: string): Promise<Uint8Array> {
  return (await buildPlugin(path.join(t.testdir({ 'index.ts': source }), 'index.ts'))).module;
}

t.test('the page of a failure names the line, and its recording fails alike and passes once it is mended', async t => {
  const module = await built(t, SOURCE);
  const { axe, errors, open, page, s } = await startAdminBrowser(t, {
    async prepare(s) {
      await s.install(module);
      const open = { accept_public: true, record: true };
      await s.admin('PUT', '/plugins/seats/triggers/take/settings', open);
    },
  });
  const failed = await s.trigger('seats/seats/a1', { method: 'POST', body: 'personal@example.org' });
  t.equal(failed.status, 502);
  await open('/admin/executions?outcome=failed');
  await page
    .getByRole('row', { name: /handler error/ })
    .getByRole('button')
    .first()
    .click();
  const drawer = page.getByRole('dialog');
  await drawer.getByText(/at take \(index\.ts:9:\d+\)/).waitFor();
  await drawer.getByText(/plugin-host plugin replay \d+ --url/).waitFor();
  t.same(await axe(), []);
  const coming = page.waitForEvent('download');
  await drawer.getByRole('button', { name: 'Download the recording' }).click();
  const file = await (await coming).path();
  const text = fs.readFileSync(file, 'utf8');
  t.notMatch(text, 'personal@example.org');

  const again = await replay(module, readRecording(text, file), {});
  t.same([again.differences, again.outcome.kind], [[], 'handler_error'], 'it fails alike');
  const mended = await replay(await built(t, SOURCE.replace('owner!', "(owner ?? '')")), readRecording(text, file), {});
  t.equal(mended.isMended, true);
  t.match(mended.differences[0], /^outcome: then "handler_error", now "ok"$/);
  t.same(errors, []);
});
