import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { type Json, MANY_LANES, request, startTestService, TOKEN } from '../support/service.ts';
import { okPlugin } from '../support/wat.ts';
import { Wire } from '../support/wire.ts';

t.test('an upload under way is finished and answered before the service ends; what comes later is refused', async t => {
  const s = await startTestService(MANY_LANES);
  let stopped: Promise<void> | null = null;
  t.teardown(() => stopped ?? s.stop());
  const boundary = 'xxxxxxxx';
  const body = Buffer.concat([
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="p.wasm"\r\nContent-Type: application/wasm\r\n\r\n`,
    ),
    okPlugin('slow'),
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ]);
  const uploading = new Wire(s.base);
  const later = new Wire(s.base);
  t.teardown(() => uploading.close());
  t.teardown(() => later.close());
  await uploading.write(
    `POST /api/admin/plugins/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: multipart/form-data; boundary=${boundary}\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  await uploading.write(body.subarray(0, 200));
  // An answer on a second connection says that what came before on the first has been read.
  await later.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  await later.until(/alive/);
  stopped = s.stop();
  await later.write('GET /api/admin/plugins HTTP/1.1\r\nHost: x\r\n\r\n');
  t.match(await later.until(/"code":"draining"/), /HTTP\/1.1 503 .*Retry-After: 2/s);
  await later.write('GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n');
  await later.until(/"status":"draining"/);
  await uploading.write(body.subarray(200));
  t.match(await uploading.until(/\r\n\r\n.*wasm_key/s), /^HTTP\/1.1 201 /);
  await stopped;
});

t.test('before it ends a service says for a while that it is draining, and answers everything', async t => {
  const s = await startTestService();
  let stopped: Promise<void> | null = null;
  t.teardown(() => stopped ?? s.stop());
  await s.install(okPlugin('still'));
  const kept = new Wire(s.base);
  t.teardown(() => kept.close());
  await kept.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  await kept.until(/alive/);
  const delayMs = 3000;
  stopped = s.service.stop(5000, delayMs).then(() => s.stop());
  const ready = await request(`${s.base}/readyz`);
  t.match(ready, { status: 503, json: { status: 'draining' } }, 'a load balancer sees it');
  t.match(await s.trigger('still/run'), { status: 200, text: 'ok' }, 'new requests are answered');
  const listed = (await s.admin('GET', '/hosts')).json.items as Json[];
  t.match(listed, [{ state: 'draining', processes: [{ state: 'draining' }] }], 'and so are those of the API');
  await sleep(delayMs - 1000);
  await kept.write('GET /api/triggers/http/still/run HTTP/1.1\r\nHost: x\r\n\r\n');
  t.match(await kept.until(/\r\n\r\nok/), /^HTTP\/1.1 200 /m, 'on a connection of before, too');
  await stopped;
  await t.rejects(request(`${s.base}/readyz`), 'then it has ended');
});
