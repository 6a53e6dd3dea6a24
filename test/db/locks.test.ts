import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { LOCKS } from '../../src/db/locks.ts';

const root = path.resolve(import.meta.dirname, '../..');
const filesIn = (directory: string, ends: string): string[] =>
  fs
    .readdirSync(path.join(root, directory), { recursive: true, encoding: 'utf8' })
    .filter(f => f.endsWith(ends))
    .map(f => path.join(directory, f));
const read = (file: string): string => fs.readFileSync(path.join(root, file), 'utf8');

const numbers = Object.values(LOCKS).flatMap(lock => (typeof lock === 'number' ? [lock] : Object.values(lock)));

t.test('every lock has a number of its own', async t => {
  t.equal(new Set(numbers).size, numbers.length);
});

t.test('numbers of locks stand in one table', async t => {
  const inSql = filesIn('sql', '.sql').flatMap(f => [...read(f).matchAll(/pg_advisory_xact_lock\((.*?)\)/g)]);
  t.ok(inSql.length > 0);
  for (const [, number] of inSql) t.equal(Number(number), LOCKS.graph, 'SQL takes the lock of the graph alone');
  for (const file of [...filesIn('src', '.ts'), ...filesIn('workers', '.ts')]) {
    if (file === 'src/db/locks.ts') continue;
    const text = read(file);
    for (const number of numbers) t.notOk(text.replaceAll('_', '').includes(String(number)), `${file} holds ${number}`);
    t.notMatch(text, /hashtext/, `${file} makes no number of a name`);
    // A session's lock, whose number its caller takes from the table.
    if (file !== 'src/db/held-lock.ts') t.notMatch(text, /advisory_(xact_)?lock/, `${file} takes locks by db/locks`);
  }
});
