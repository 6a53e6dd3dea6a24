import t from 'tap';
import { installSample } from '../../src/plugins/sample.ts';
import { buildExample } from '../support/sdk.ts';
import { startTestService } from '../support/service.ts';

t.test('the sample plugin is installed once: an administrator who takes it away is not overruled', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const { installer, registry } = s.service;
  const bytes = await buildExample('hello');
  t.equal(await installSample(installer, registry, bytes), true);
  t.equal((await s.trigger('hello/greet')).status, 200);
  t.equal(await installSample(installer, registry, bytes), false, 'it is there');
  t.equal((await s.admin('DELETE', '/plugins/hello')).status, 204);
  t.equal(await installSample(installer, registry, bytes), false, 'it was taken away');
  t.equal((await s.trigger('hello/greet')).status, 404);
});

t.test(
  "an administrator's own plugin of that name is left alone, and an upload that was cut off is done again",
  async t => {
    const s = await startTestService();
    t.teardown(() => s.stop());
    const { installer, registry } = s.service;
    const bytes = await buildExample('hello');
    const by = { kind: 'command_line', userId: null, name: 'serve --sample', requestId: '', address: '' } as const;
    const { Readable } = await import('node:stream');
    await installer.admit(await installer.receive(Readable.from([bytes]), 1e8), by);
    t.equal(await installer.wasEverKnown('hello'), false, 'a start that ended before it installed the sample');
    t.equal((await s.upload(bytes)).status, 201);
    t.equal(await installSample(installer, registry, bytes), false);
  },
);
