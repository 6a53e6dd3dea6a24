import path from 'node:path';
import t from 'tap';
import { buildPlugin } from '../../sdk/typescript/build.ts';
import { TestHost } from '../../src/authors/test-host.ts';
import type { JsonValue } from '../support/service.ts';

/** The host of `plugin test` answers as the service does (docs/authors.md "Try it, and test it"). */

const CONFORMANCE = path.resolve(import.meta.dirname, '../../sdk/typescript/conformance/index.ts');
const base64 = (text: string): string => Buffer.from(text).toString('base64');

t.test('what a test stores ends, is refused and is hidden as in the service', async t => {
  const { module } = await buildPlugin(CONFORMANCE);
  const host = new TestHost(module, { config: { title: 'A title' } });
  t.teardown(() => host.close());
  /** The result of a case of the conformance plugin, or the code and text of its error. */
  const run = async (name: string, given: JsonValue[], user?: number): Promise<JsonValue> => {
    const { json } = await host.http(`POST /run/${name}`, { body: given, ...(user === undefined ? {} : { user }) });
    const answer: { result?: JsonValue } = Object(json);
    return 'result' in answer ? (answer.result ?? null) : Object(json);
  };

  await t.test('keys and values', async t => {
    await run('kv_set', ['ends', 'x', 1]);
    await run('kv_set', ['stays', 'x', 0]);
    t.equal(await run('kv_get', ['ends']), 'x');
    while (host.kv.has('ends')) await new Promise(resolve => setTimeout(resolve, 50));
    t.same([await run('kv_get', ['ends']), await run('kv_get', ['stays'])], [null, 'x']);
    t.match(await run('kv_set', ['', 'x', 0]), { code: 'invalid_argument', text: 'the key is empty' });
    t.match(await run('kv_get', ['a\0b']), { code: 'invalid_argument' });
    t.match(await run('kv_get', ['k'.repeat(10_000)]), { code: 'too_large' });
    t.match(await run('kv_set', ['a', 'x'.repeat(2 ** 20 + 1), 0]), { code: 'too_large' });
    t.match(await run('kv_get_many', [['a', '']]), { code: 'invalid_argument' });
    t.same(await run('kv_get_many', [['10', 'stays', '9']]), [null, 'x', null]);
    t.match(await run('kv_increment', ['stays', '1']), { code: 'invalid_argument', text: /int64/ });
    t.match(await run('publish', ['not a name', {}]), { code: 'invalid_argument' });
  });

  await t.test('files', async t => {
    const id = host.addFile('mine.txt', 'mine', { user: 7 });
    t.match(await run('file_meta', [id], 7), { id, size: 4 });
    t.match(await run('file_meta', [id], 8), { code: 'not_found' }, 'another user');
    t.match(await run('file_read_all', [id]), { code: 'not_found' }, 'a request without a user');
    const own = Object(await run('file_store', ['a.txt', 'text/plain', 'document', base64('own')]));
    t.match(await run('file_meta', [own.id], 8), { size: 3 }, 'what the plugin stored is its own');
    t.match(await run('file_store', ['a.txt', 'text/plain', 'picture', base64('own')]), { code: 'invalid_argument' });
    const short = Object(await run('file_store_ttl', ['short.txt', 200]));
    while ('size' in Object(await run('file_meta', [short.id]))) await new Promise(resolve => setTimeout(resolve, 50));
    t.match(await run('file_meta', [short.id]), { code: 'not_found' });
  });
});
