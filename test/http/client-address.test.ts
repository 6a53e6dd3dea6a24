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
    ['10.0.0.1', '203.0.113.5:44321', '203.0.113.5'],
    ['10.0.0.1', '[2001:db8::7]:443', '2001:db8::7'],
    ['10.0.0.1', '[2001:db8::7]', '2001:db8::7'],
    ['10.0.0.1', '::ffff:203.0.113.13', '203.0.113.13'],
    ['10.0.0.1', '[::ffff:203.0.113.13]:80', '203.0.113.13'],
    ['10.0.0.1', '203.0.113.11 , ', '203.0.113.11'],
    ['10.0.0.1', '1.2.3.4,,10.9.9.9:80,\t', '1.2.3.4'],
    ['10.0.0.1', '1.2.3.4:', '10.0.0.1'],
    ['10.0.0.1', '1.2.3.4:80:90', '10.0.0.1'],
    ['10.0.0.1', '[1.2.3.4', '10.0.0.1'],
    ['10.0.0.1', 'unknown', '10.0.0.1'],
    ['10.0.0.1', '2001:db8::7:443', '2001:db8::7:443'],
  ];
  for (const [peer, forwarded, want] of rows)
    t.equal(of(peer, forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }), want, `${peer} ${forwarded}`);
});

t.test('Forwarded is read in each form of RFC 7239, where there is no X-Forwarded-For', async t => {
  const of = makeClientAddress(['10.0.0.0/8', '2001:db8:1::/48']);
  const rows: Array<[forwarded: string, want: string]> = [
    ['for=192.0.2.60;proto=http;by=203.0.113.43', '192.0.2.60'],
    ['For="[2001:db8:cafe::17]:4711"', '2001:db8:cafe::17'],
    ['for=192.0.2.43, for=198.51.100.17', '198.51.100.17'],
    ['for=192.0.2.43,for=10.1.1.1 , FOR="[2001:db8:1::9]"', '192.0.2.43'],
    ['by="a,b";for="192.0.2.43:_port"', '192.0.2.43'],
    ['host="x;for=9.9.9.9";for=192.0.2.43', '192.0.2.43'],
    ['for="192.0.2.4\\3"', '192.0.2.43'],
    ['for=_hidden', '10.0.0.1'],
    ['for=unknown', '10.0.0.1'],
    ['proto=https', '10.0.0.1'],
    ['for=192.0.2.43, proto=https', '10.0.0.1'],
    ['xfor=192.0.2.43', '10.0.0.1'],
    // What a client begins and does not end takes nothing from what the proxy adds.
    ['for="6.6.6.6, for=192.0.2.43', '192.0.2.43'],
    ['for = 192.0.2.43 ; proto=http', '192.0.2.43'],
    ['', '10.0.0.1'],
  ];
  for (const [forwarded, want] of rows) t.equal(of('10.0.0.1', { forwarded }), want, forwarded);
  t.equal(of('203.0.113.9', { forwarded: 'for=1.2.3.4' }), '203.0.113.9', 'from trusted proxies alone');
  t.equal(of('10.0.0.1', { forwarded: 'for=6.6.6.6', 'x-forwarded-for': '1.2.3.4' }), '1.2.3.4');
});

t.test('a long header costs what it is long', async t => {
  const of = makeClientAddress(['10.0.0.0/8']);
  // With patterns that try each beginning again, one of these takes minutes.
  for (const part of [' ', '\\"', '"', 'for=x ', 'a=";', ',"'])
    t.equal(of('10.0.0.1', { forwarded: `for=x${part.repeat(2 ** 20 / part.length)}y` }), '10.0.0.1', part);
});

t.test('a range that cannot be read is named', async t => {
  for (const bad of ['10.0.0.0/33', 'host/8', '10.0.0.0/x', '10.0.0.0/', '10.0.0.0/8/8', ''])
    t.throws(() => makeClientAddress([bad]), /http.trusted_proxies/);
});
