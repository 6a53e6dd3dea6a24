import t from 'tap';
import { crashText } from '../../workers/crash-text.ts';

/** What Go's runtime has written of a crash stands in the record (docs/plugins.md "Records"). */

const PANIC = [
  'a line of before',
  'panic: runtime error: index out of range [3] with length 1',
  '',
  'goroutine 5 [running]:',
  'github.com/me/plug/seats.Row[...](0x1, {0x2, 0x3})',
  '\tgithub.com/me/plug/seats/row.go:9 +0x11',
  'github.com/other/lib.Each(0x1)',
  '\tgithub.com/other/lib/each.go:7 +0x2',
  'main.(*booking).записать(0x1)',
  '\tgithub.com/me/plug/main.go:31 +0x4',
  'created by main.list in goroutine 1',
  '\tgithub.com/me/plug/main.go:30 +0x3',
];

t.test("a crash is named with the author's functions, and no others", async t => {
  t.equal(
    crashText(PANIC),
    [
      'panic: runtime error: index out of range [3] with length 1',
      '    at github.com/me/plug/seats.Row[...] (github.com/me/plug/seats/row.go:9)',
      '    at main.(*booking).записать (github.com/me/plug/main.go:31)',
    ].join('\n'),
  );
  t.equal(
    crashText(['fatal error: stack overflow', 'goroutine 1 gp=0x1 m=0 [running]:']),
    'fatal error: stack overflow',
  );
});

t.test('a line of a plugin that begins like a crash is none', async t => {
  t.equal(crashText(['fatal error: no answer, trying again', 'goes on']), null);
  t.equal(crashText(['nothing', 'of it']), null);
});

t.test('what is made to be slow is read in time', async t => {
  const lines = ['panic: x', 'goroutine 1 [running]:', ...Array.from({ length: 10_000 }, () => '('.repeat(60_000))];
  t.equal(crashText(lines), 'panic: x');
});
