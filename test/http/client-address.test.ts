import t from 'tap';
import { makeClientAddress } from '../../src/http/client-address.ts';

t.test('X-Forwarded-For is believed from trusted proxies only, back to the first address that is none', async t => {
  const of = makeClientAddress(['10.0.0.0/8', '::1', '192.168.1.5']);
  const rows: Array<[peer: string, forwarded: string | undefined, want: string]> = [
    ['203.0.113.9', undefined, '203.0.113.9'],
    ['203.0.113.9', '1.2.3.4', '203.0.113.9'],
    ['10.0.0.1', undefined, '10.0.0.1'],
    ['10.0.0.1', '1.2.3.4', '1.2.3.4'],
    ['10.0.0.1', '6.6.6.6, 1.2.3.4', '1.2.3.4'],
    ['10.0.0.1', '1.2.3.4, 10.9.9.9', '1.2.3.4'],
    ['10.0.0.1', '10.9.9.9', '10.9.9.9'],
    ['10.0.0.1', 'nonsense', '10.0.0.1'],
    ['10.0.0.1', '1.2.3.4, nonsense', '10.0.0.1'],
    ['192.168.1.5', '2001:db8::7', '2001:db8::7'],
    ['192.168.1.6', '1.2.3.4', '192.168.1.6'],
    ['::1', '1.2.3.4', '1.2.3.4'],
  ];
  for (const [peer, forwarded, want] of rows)
    t.equal(of(peer, forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }), want, `${peer} ${forwarded}`);
});

t.test('a range that cannot be read is named', async t => {
  for (const bad of ['10.0.0.0/33', 'host/8', '10.0.0.0/x', '10.0.0.0/', '10.0.0.0/8/8', ''])
    t.throws(() => makeClientAddress([bad]), /http.trusted_proxies/);
});
