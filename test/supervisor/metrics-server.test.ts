import { once } from 'node:events';
import net from 'node:net';
import t from 'tap';
import { gauge } from '../../src/base/metric.ts';
import { startMetricsServer } from '../../src/supervisor/metrics-server.ts';
import { request } from '../support/service.ts';
import { until } from '../support/until.ts';

/** The port for Prometheus (docs/operating.md "Metrics"). */
const collect = async () => [[gauge('plugin_host_of_a_test', 'A value.', 7)]];

t.test('with metrics.token a request carries it, and after a reload the new one', async t => {
  let token = 'the-token';
  const server = await startMetricsServer('127.0.0.1', 0, () => token, collect);
  t.teardown(() => server.close());
  const scrape = (authorization?: string) =>
    request(
      `http://127.0.0.1:${server.port}/metrics`,
      authorization === undefined ? {} : { headers: { authorization } },
    );
  t.match(await scrape('Bearer the-token'), { status: 200, text: /plugin_host_of_a_test 7/ });
  for (const wrong of [undefined, 'Bearer the-toke', 'Bearer the-token2', 'Basic the-token', 'the-token', 'Bearer '])
    t.match(await scrape(wrong), { status: 401, text: /metrics\.token as bearer token/ }, `${wrong}`);
  token = 'the-next-one';
  t.match(await scrape('Bearer the-token'), { status: 401 });
  t.match(await scrape('Bearer the-next-one'), { status: 200 });
});

t.test('it listens at its address alone, and answers a few at a time', async t => {
  const server = await startMetricsServer('127.0.0.1', 0, () => '', collect);
  t.teardown(() => server.close());
  t.equal((await request(`http://127.0.0.1:${server.port}/metrics`)).status, 200);
  const elsewhere = net.connect(server.port, '127.0.0.2');
  const [error] = (await once(elsewhere, 'error')) as [NodeJS.ErrnoException];
  t.equal(error.code, 'ECONNREFUSED');
  let closed = 0;
  const clients = Array.from({ length: 40 }, () =>
    net
      .connect(server.port, '127.0.0.1')
      .on('error', () => {})
      .on('close', () => closed++),
  );
  t.teardown(() => clients.map(c => c.destroy()));
  await until(() => closed >= 40 - 16);
  t.ok(closed <= 40 - 15, `${closed} were refused`);
});
