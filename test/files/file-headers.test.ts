import t from 'tap';
import { dispositionOf, rangeOf } from '../../src/files/file-headers.ts';

t.test(
  'the name of a file stands in the header in UTF-8, and in ASCII that no client reads in another way',
  async t => {
    const rows: Array<[name: string, want: string]> = [
      ['report.pdf', 'attachment; filename=report.pdf'],
      ['my report.pdf', 'attachment; filename="my report.pdf"'],
      ['a"b\\c.txt', `attachment; filename=a_b_c.txt; filename*=UTF-8''a%22b%5Cc.txt`],
      ['100%41.txt', `attachment; filename=100_41.txt; filename*=UTF-8''100%2541.txt`],
      [
        'Отчёт (1).pdf',
        `attachment; filename="_____ (1).pdf"; filename*=UTF-8''%D0%9E%D1%82%D1%87%D1%91%D1%82%20%281%29.pdf`,
      ],
      [
        'a\r\nSet-Cookie: x=y',
        `attachment; filename="a__Set-Cookie: x=y"; filename*=UTF-8''a%0D%0ASet-Cookie%3A%20x%3Dy`,
      ],
      ["it's*.txt", "attachment; filename=it's*.txt"],
      ['a;b=c.txt', 'attachment; filename="a;b=c.txt"'],
    ];
    for (const [name, want] of rows) t.equal(dispositionOf({ name, mimeType: 'application/pdf' }), want, name);
  },
);

t.test('only what cannot run is shown in the browser, and everything else is saved', t => {
  for (const mimeType of ['image/png', 'text/plain; charset=utf-8', 'video/mp4'])
    t.match(dispositionOf({ name: 'x', mimeType }), /^inline;/, mimeType);
  for (const mimeType of [
    'text/html',
    'TEXT/HTML',
    'image/svg+xml',
    'text/plainly',
    'application/xhtml+xml',
    'text/xml',
    'application/pdf',
    'text/javascript',
    '',
    'nonsense',
  ])
    t.match(dispositionOf({ name: 'x', mimeType }), /^attachment;/, mimeType);
  t.end();
});

t.test('one range of bytes is read as RFC 9110 says', async t => {
  const rows: Array<[header: string | undefined, size: number, want: ReturnType<typeof rangeOf>]> = [
    [undefined, 10, null],
    ['bytes=0-3', 10, { from: 0, to: 3 }],
    ['bytes=4-', 10, { from: 4, to: 9 }],
    ['bytes=4-99999999999999999999', 10, { from: 4, to: 9 }],
    ['bytes=-3', 10, { from: 7, to: 9 }],
    ['bytes=-11', 10, { from: 0, to: 9 }],
    ['bytes=-0', 10, 'unsatisfiable'],
    ['bytes=10-', 10, 'unsatisfiable'],
    ['bytes=0-', 0, 'unsatisfiable'],
    ['bytes=5-4', 10, null],
    ['bytes=0-1,4-5', 10, null],
    ['bytes=-', 10, null],
    ['items=0-3', 10, null],
    ['bytes=a-3', 10, null],
  ];
  for (const [header, size, want] of rows) t.same(rangeOf(header, size), want, `${header} of ${size}`);
});
