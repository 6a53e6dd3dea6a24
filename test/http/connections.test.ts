import t, { type Test } from 'tap';
import { type ConnectionLimits, Connections, countConnections } from '../../src/http/connections.ts';
import { startServer } from '../../src/http/server.ts';
import { testIntake } from '../support/intake.ts';
import { until } from '../support/until.ts';
import { Wire } from '../support/wire.ts';

async function world(t: Test, limits: Partial<ConnectionLimits>) {
  const refused: string[] = [];
  const unreadable: Array<[string, number]> = [];
  const connections = new Connections({
    max: 100,
    perAddressMax: 100,
    processes: 1,
    isProxy: () => false,
    onRefused: (limit, address) => refused.push(`${limit} ${address}`),
    onUnreadable: (address, count) => unreadable.push([address, count]),
    ...limits,
  });
  const server = await startServer('127.0.0.1', 0, {
    triggerPrefix: '/t/',
    clientAddress: peer => peer,
    intake: testIntake(t),
    connections,
    handleTrigger(x) {
      x.replyFlat(200, '', 'ran');
      return undefined;
    },
    handleRoute: x => x.reply({ status: 200, headers: [], body: 'ran' }),
    onUnknownError: error => t.fail(String(error)),
  });
  t.teardown(() => server.close());
  const connect = (localAddress: string): Wire => {
    const wire = new Wire(`http://127.0.0.1:${server.port}`, { localAddress });
    t.teardown(() => wire.close());
    return wire;
  };
  /** Whether a request on it is answered; if not, it was closed. */
  const isServed = async (wire: Wire): Promise<boolean> => {
    await wire.write('GET /t/x HTTP/1.1\r\nHost: a\r\n\r\n').catch(() => {});
    return await Promise.race([wire.until(/ran$/).then(() => true), wire.closed().then(() => false)]);
  };
  const served = async (from: string, count: number): Promise<Wire[]> => {
    const wires = Array.from({ length: count }, () => connect(from));
    for (const wire of wires) t.ok(await isServed(wire), `one from ${from}`);
    return wires;
  };
  return { connect, connections, isServed, refused, served, unreadable };
}

t.test('a host holds so many connections, and takes new ones when some have closed', async t => {
  const w = await world(t, { max: 3 });
  const [first] = await w.served('127.0.0.1', 3);
  t.notOk(await w.isServed(w.connect('127.0.0.1')));
  t.same(w.refused, ['http.max_connections 127.0.0.1']);
  first?.close();
  await first?.closed();
  await until(() => w.connections.open <= 2);
  t.ok(await w.isServed(w.connect('127.0.0.1')));
});

t.test('one address holds its share, and the others theirs; a trusted proxy speaks for many', async t => {
  const w = await world(t, { max: 100_000, perAddressMax: 4, isProxy: address => address === '127.0.0.9' });
  await w.served('127.0.0.9', 6);
  await w.served('127.0.0.2', 4);
  // How often the kernel is asked depends on how long it takes: some more may get in before.
  while (await w.isServed(w.connect('127.0.0.2')));
  t.same(w.refused, ['http.max_connections_per_address 127.0.0.2']);
  await w.served('127.0.0.3', 2);
});

t.test('the kernel says who holds connections; IPv6 counts by /64, mapped IPv4 as IPv4', t => {
  const head = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
  const row = (local: string, remote: string, state: string): string =>
    `   0: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000     0        0 1 1 0 20 4 30 10 -1`;
  const tcp = [
    row('0100007F:1F90', '00000000:0000', '0A'),
    row('0100007F:1F90', '0200007F:D431', '01'),
    row('0100007F:1F90', '0200007F:D432', '08'),
    row('0100007F:1F90', '0200007F:D433', '06'),
    row('0100007F:1F91', '0200007F:D434', '01'),
  ];
  const here = '00000000000000000000000001000000:1F90';
  const tcp6 = [
    row(here, 'B80D01200200010000000000 01000000:D431'.replace(' ', ''), '01'),
    row(here, 'B80D012002000100EFBEADDE02000000:D431', '01'),
    row(here, 'B80D012003000100EFBEADDE02000000:D431', '01'),
    row(here, '0000000000000000FFFF00000200007F:D431', '01'),
  ];
  t.same([...countConnections([head + tcp.join('\n'), head + tcp6.join('\n')], 8080)].sort(), [
    ['127.0.0.2', 3],
    ['2001:db8:1:2::/64', 2],
    ['2001:db8:1:3::/64', 1],
  ]);
  t.end();
});

t.test(
  'connections that end at once without a readable request are logged once: a proxy may speak HTTP/1.0',
  async t => {
    const w = await world(t, {});
    for (let k = 0; k < 7; k++) {
      const wire = w.connect('127.0.0.4');
      await wire.write('GET /t/x HTTP/1.0\r\nHost: a\r\n\r\n');
      t.match(await wire.closed(), /^HTTP\/1.1 505 /);
    }
    const fine = w.connect('127.0.0.5');
    for (let k = 0; k < 7; k++) {
      const wire = w.connect('127.0.0.5');
      t.ok(await w.isServed(wire));
      wire.close();
    }
    t.ok(await w.isServed(fine));
    t.same(w.unreadable, [['127.0.0.4', 5]]);
  },
);
