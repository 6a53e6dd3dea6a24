import t, { type Test } from 'tap';
import { startServer } from '../../src/http/server.ts';
import { testIntake } from '../support/intake.ts';
import { Wire } from '../support/wire.ts';

/** A server that notes what reaches it, on both ways in. */
async function noting(t: Test): Promise<{ base: string; seen: string[]; close(): void }> {
  const seen: string[] = [];
  const server = await startServer('127.0.0.1', 0, {
    triggerPrefix: '/t/',
    clientAddress: peer => peer,
    intake: testIntake(t),
    handleTrigger(x) {
      seen.push(x.path);
      if (!x.hasBody) return void x.replyFlat(200, '', 'ran');
      x.collectBody(1000, () => x.replyFlat(200, '', 'ran'));
      return undefined;
    },
    async handleRoute(x) {
      seen.push(x.path);
      if (x.hasBody) await x.takeBody().pump(() => null);
      if (x.path === '/later') await new Promise(resolve => setTimeout(resolve, 50));
      await x.reply({ status: 200, headers: [], body: 'ran' });
    },
    onUnknownError: error => t.fail(String(error)),
  });
  return { base: `http://127.0.0.1:${server.port}`, seen, close: () => server.close() };
}

const CHUNKS = '3\r\nabc\r\n0\r\n\r\n';
const SECOND = 'GET /second HTTP/1.1\r\nHost: a\r\n\r\n';
const HOST = 'Host: a\r\n';

/** Headers behind the request line, and the body. */
const AMBIGUOUS: Array<[what: string, headers: string, body: string]> = [
  ['two lengths', `${HOST}Content-Length: 3\r\nContent-Length: 50\r\n`, 'abc'],
  ['two lengths that agree', `${HOST}Content-Length: 3\r\nContent-Length: 3\r\n`, 'abc'],
  ['an empty length', `${HOST}Content-Length:\r\n`, ''],
  ['two hosts', `${HOST}Host: b\r\n`, ''],
  ['two hosts that agree', `${HOST}${HOST}`, ''],
  ['a host that is a list', 'Host: a, b\r\n', ''],
  ['a host with a path', 'Host: a/b\r\n', ''],
  ['gzip, chunked', `${HOST}Transfer-Encoding: gzip, chunked\r\n`, CHUNKS],
  ['identity', `${HOST}Transfer-Encoding: identity\r\n`, CHUNKS],
  ['xchunked', `${HOST}Transfer-Encoding: xchunked\r\n`, CHUNKS],
  ['chunked, chunked', `${HOST}Transfer-Encoding: chunked, chunked\r\n`, CHUNKS],
  ['chunked, then identity', `${HOST}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n`, CHUNKS],
  ['chunked twice', `${HOST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n`, CHUNKS],
  ['an empty coding', `${HOST}Transfer-Encoding:\r\n`, ''],
  ['a list of lengths', `${HOST}Content-Length: 3, 3\r\n`, 'abc'],
  ['a length with a sign', `${HOST}Content-Length: +3\r\n`, 'abc'],
  ['a negative length', `${HOST}Content-Length: -3\r\n`, 'abc'],
  ['a length in hexadecimal', `${HOST}Content-Length: 0x3\r\n`, 'abc'],
  ['a length beyond 64 bits', `${HOST}Content-Length: 18446744073709551619\r\n`, 'abc'],
  // The library itself answers these.
  ['a length and a coding', `${HOST}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n`, CHUNKS],
  ['a coding and a length', `${HOST}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n`, CHUNKS],
  ['no host', 'X: y\r\n', ''],
];

t.test('a head that two servers may read in two ways is answered 400, and nothing behind it is', async t => {
  const s = await noting(t);
  t.teardown(s.close);
  await Promise.all(
    ['/t/first', '/first'].flatMap(path =>
      AMBIGUOUS.map(async ([what, headers, body]) => {
        const wire = new Wire(s.base);
        await wire.write(`POST ${path} HTTP/1.1\r\n${headers}\r\n${body}${SECOND}`);
        const answer = await wire.closed();
        t.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n.*Connection: close\r\n/s, `${what} at ${path}`);
        t.equal(answer.split('HTTP/1.1 ').length, 2, `${what} at ${path} has one answer`);
      }),
    ),
  );
  t.same(s.seen, [], 'nothing was routed');
});

t.test('what the library cannot read gets no answer of ours, and nothing behind it is answered', async t => {
  const s = await noting(t);
  t.teardown(s.close);
  const rows = {
    'a space before the colon': `POST /x HTTP/1.1\r\n${HOST}Content-Length : 3\r\n\r\nabc`,
    'a tab before the colon': `POST /x HTTP/1.1\r\n${HOST}Transfer-Encoding\t: chunked\r\n\r\n${CHUNKS}`,
    'a folded line': `POST /x HTTP/1.1\r\n${HOST}Transfer-Encoding:\r\n chunked\r\n\r\n${CHUNKS}`,
    'a bare LF': `GET /x HTTP/1.1\r\n${HOST.trim()}\nX: y\r\n\r\n`,
    'a bare CR': `GET /x HTTP/1.1\r\n${HOST}X: y\rZ: 3\r\n\r\n`,
    'a NUL in a value': `GET /x HTTP/1.1\r\n${HOST}X: y\0z\r\n\r\n`,
    'a NUL in a name': `GET /x HTTP/1.1\r\n${HOST}X\0: y\r\n\r\n`,
    'a chunk that is too long a number': `POST /x HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff3\r\nabc\r\n0\r\n\r\n`,
  };
  await Promise.all(
    Object.entries(rows).map(async ([what, text]) => {
      const wire = new Wire(s.base);
      await wire.write(text + SECOND);
      // The library waits for more, or has closed: this side says that nothing comes.
      wire.end();
      t.notMatch(await wire.closed(), /HTTP\/1\.1 200/, what);
    }),
  );
  t.notOk(s.seen.includes('/second'));
});

t.test('HTTP/1.0 is answered 505 by the library, also with a transfer coding', async t => {
  const s = await noting(t);
  t.teardown(s.close);
  for (const headers of [HOST, `${HOST}Transfer-Encoding: chunked\r\n`]) {
    const wire = new Wire(s.base);
    await wire.write(`GET /x HTTP/1.0\r\n${headers}\r\n${SECOND}`);
    t.match(await wire.closed(), /^HTTP\/1\.1 505 /);
  }
  t.same(s.seen, []);
});

t.test('the library answers what it cannot read as docs/api.md says, and runs nothing for it', async t => {
  const s = await noting(t);
  t.teardown(s.close);
  const fields = (count: number): string => Array.from({ length: count }, (_, k) => `X${k}: y\r\n`).join('');
  const chunked = `POST /x HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`;
  const rows: Record<string, [status: number, text: string]> = {
    'a head of 98 fields': [200, `GET /x HTTP/1.1\r\n${HOST}${fields(97)}\r\n`],
    'a field more': [431, `GET /x HTTP/1.1\r\n${HOST}${fields(98)}\r\n`],
    'a head beyond 16 KiB': [431, `GET /x HTTP/1.1\r\n${HOST}X: ${'y'.repeat(16_384)}\r\n\r\n`],
    'a target with scheme and host': [505, `GET http://a/x HTTP/1.1\r\n${HOST}\r\n`],
    'a chunk with an extension': [400, `${chunked}3;x=y\r\nabc\r\n0\r\n\r\n`],
    'a chunk whose size is none': [400, `${chunked}zz\r\nabc\r\n0\r\n\r\n`],
    trailers: [505, `${chunked}3\r\nabc\r\n0\r\nX: y\r\n\r\n`],
  };
  for (const [what, [status, text]] of Object.entries(rows)) {
    const wire = new Wire(s.base);
    await wire.write(text);
    t.match(await Promise.race([wire.until(/\r\n\r\n/), wire.closed()]), new RegExp(`^HTTP/1\\.1 ${status} `), what);
    wire.close();
  }
  const wire = new Wire(s.base);
  const ready = `GET /t/x HTTP/1.1\r\n${HOST}\r\n`;
  await wire.write(`${ready}GET /later HTTP/1.1\r\n${HOST}\r\n${ready}`);
  const answers = await wire.closed();
  t.equal(answers, '', 'an answer that is not ready ends the connection');
});

t.test('heads that are right are routed, whatever their case, and a connection is used again', async t => {
  const s = await noting(t);
  t.teardown(s.close);
  const heads = [
    `POST /t/x HTTP/1.1\r\nHost: a.example:8080\r\nContent-Length: 3\r\n\r\nabc`,
    `POST /x HTTP/1.1\r\nhost: [::1]:80\r\ncontent-length: 0003\r\n\r\nabc`,
    `GET /x HTTP/1.1\r\nHost:\r\n\r\n`,
    `GET /t/x HTTP/1.1\r\nHost: a\r\nCookie: a=1\r\nCookie: b=2\r\nAccept: x\r\nAccept: y\r\n\r\n`,
  ];
  const wire = new Wire(s.base);
  for (const [k, head] of heads.entries()) {
    await wire.write(head);
    const answers = await wire.until(new RegExp(`(?:HTTP/1.1 200.*?ran){${k + 1}}`, 's'));
    t.notMatch(answers, /HTTP\/1\.1 400/);
  }
  wire.close();
});

t.test(
  'a body in chunks is the last request of its connection: the library reads chunks less strictly than a proxy',
  async t => {
    const s = await noting(t);
    t.teardown(s.close);
    for (const path of ['/t/x', '/x']) {
      const wire = new Wire(s.base);
      await wire.write(`POST ${path} HTTP/1.1\r\n${HOST}Transfer-Encoding: Chunked\r\n\r\n${CHUNKS}`);
      const answer = await wire.closed();
      t.match(answer, /^HTTP\/1\.1 200 OK\r\n.*Connection: close\r\n.*ran$/s, path);
    }
  },
);
