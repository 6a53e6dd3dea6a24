import t from 'tap';
import { startTestService } from '../support/service.ts';
import { okPlugin } from '../support/wat.ts';
import { Wire } from '../support/wire.ts';

/** A body that comes behind the answer must not touch the response any more (docs/ARCHITECTURE.md "A request to a trigger"). */

const s = await startTestService();
t.teardown(() => s.stop());
const { id } = await s.install(okPlugin('late'));
const [name] = [...(s.service.registry.find(id)?.triggers.keys() ?? [])];
const path = s.service.registry.find(id)?.triggers.get(name ?? '')?.trigger.path ?? '';
const method = s.service.registry.find(id)?.triggers.get(name ?? '')?.trigger.methods[0] ?? 'POST';

/** A token that is refused without asking the database: the answer is there before the rest of the same read is looked at. */
const CREDENTIAL = 'Authorization: Bearer pht_x';

for (const bytes of [1000, 300_000, 3_000_000])
  t.test(`a trigger that refuses before its body of ${bytes} bytes comes goes on serving`, async t => {
    const closed = await s.admin('PUT', `/plugins/${id}/triggers/${name}/settings`, { allow_service_key: true });
    t.equal(closed.status, 200);
    const head = `${method} /api/triggers/http/${id}${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${CREDENTIAL}\r\nContent-Length: ${bytes}\r\n\r\n`;
    for (let k = 0; k < 20; k++) {
      const wire = new Wire(s.base);
      // Head and body in one write, so that the server finds both in one read.
      await wire.write(Buffer.concat([Buffer.from(head), Buffer.alloc(bytes, 'x')]));
      t.match(await wire.until(/\r\n\r\n/), /^HTTP\/1\.1 401 /);
      // The same connection answers the next request when it has read the body to its end.
      await wire.write('GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
      await wire.until(/HTTP\/1\.1 200 /);
      wire.close();
    }
  });
