import t from 'tap';
import { table } from '../../src/cli/print/table.ts';

t.test('a line break in what others have written makes no row of its own', t => {
  t.equal(table([['NAME'], ['Eve\n1  admin'], ['a\r\nb\u2028c']]), 'NAME\nEve 1  admin\na b c');
  t.end();
});
