import t from 'tap';
import { AddressRanges, isAddressRange } from '../../src/base/address-ranges.ts';
import { isPublicAddress, networkOf } from '../../src/base/ip-address.ts';

/** The IANA special-purpose registries of IPv4 and IPv6, with multicast: first and last address, and their neighbours where those are public. */
const SPECIAL: ReadonlyArray<[first: string, last: string, before?: string, after?: string]> = [
  ['0.0.0.0', '0.255.255.255', undefined, '1.0.0.0'],
  ['10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
  ['100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
  ['127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
  ['169.254.0.0', '169.254.255.255', '169.253.255.255', '169.255.0.0'],
  ['172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
  ['192.0.0.0', '192.0.0.255', '191.255.255.255', '192.0.1.0'],
  ['192.0.2.0', '192.0.2.255', '192.0.1.255', '192.0.3.0'],
  ['192.88.99.0', '192.88.99.255', '192.88.98.255', '192.88.100.0'],
  ['192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
  ['198.18.0.0', '198.19.255.255', '198.17.255.255', '198.20.0.0'],
  ['198.51.100.0', '198.51.100.255', '198.51.99.255', '198.51.101.0'],
  ['203.0.113.0', '203.0.113.255', '203.0.112.255', '203.0.114.0'],
  ['224.0.0.0', '255.255.255.255', '223.255.255.255'],
  ['::', '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', undefined, '2000::'],
  ['::ffff:0.0.0.0', '::ffff:255.255.255.255'],
  ['64:ff9b::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff'],
  ['100::', '100:0:0:1:ffff:ffff:ffff:ffff'],
  ['2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff', '2000:ffff::', '2001:200::'],
  ['2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', '2001:db7:ffff::', '2001:db9::'],
  ['2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2001:ffff::', '2003::'],
  ['3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff', '3ffe:ffff::', '3fff:1000::'],
  ['4000::', '5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['5f00::', '5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['6000::', 'fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['fc00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
];

t.test('what the registries call special is not public, from its first address to its last', async t => {
  for (const [first, last, before, after] of SPECIAL) {
    for (const address of [first, last]) t.notOk(isPublicAddress(address), address);
    for (const address of [before, after]) if (address !== undefined) t.ok(isPublicAddress(address), address);
  }
});

t.test('a text that is no plain address is not public', async t => {
  const texts = [
    '8.8.8',
    '8.8.2056',
    '134744072',
    '0x8.8.8.8',
    '010.8.8.8',
    '8.8.8.8/32',
    '2a00:1450::1%eth0',
    ' 8.8.8.8',
    '',
  ];
  for (const text of texts) t.notOk(isPublicAddress(text), text);
  t.notOk(isPublicAddress('::8.8.8.8'), 'an IPv4-compatible address');
});

t.test('a mapped address counts as its IPv4 address however it is written', async t => {
  for (const text of ['::ffff:203.0.113.7', '::FFFF:cb00:7107', '0:0:0:0:0:ffff:203.0.113.7'])
    t.equal(networkOf(text), '203.0.113.7', text);
  t.equal(networkOf('::203.0.113.7'), '0:0:0:0::/64', 'one that is only compatible does not');
});

t.test('ranges are addresses or CIDR ranges, and hold IPv4-mapped addresses of their IPv4 ones', async t => {
  for (const good of ['10.0.0.0/8', '10.1.2.3', '::1', '2001:db8::/32', '0.0.0.0/0', '::/0'])
    t.ok(isAddressRange(good), good);
  const bad = [
    '',
    '10.0.0.0/',
    '10.0.0.0/33',
    '::/129',
    '10.0.0.0/8/8',
    '10/8',
    '010.0.0.0/8',
    'fe80::1%eth0',
    '10.0.0.0/ 8',
  ];
  for (const text of bad) {
    t.notOk(isAddressRange(text), text);
    t.throws(() => new AddressRanges([text]), { message: `"${text}" is not a CIDR range like 10.0.0.0/8` });
  }
  const ranges = new AddressRanges(['10.0.0.0/8', '2001:db8::/32']);
  for (const address of ['10.255.255.255', '::ffff:10.0.0.1', '::ffff:a00:1', '2001:db8::1'])
    t.ok(ranges.includes(address), address);
  for (const address of ['11.0.0.0', '::10.0.0.1', '2001:db9::', 'nonsense', ''])
    t.notOk(ranges.includes(address), address);
});
