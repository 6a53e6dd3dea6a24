import t from 'tap';
import { plainPath } from '../../src/http/plain-path.ts';
import { rawRequest, startTestService, TOKEN } from '../support/service.ts';
import { okPlugin } from '../support/wat.ts';

t.test('exactly the unreserved characters lose their escape', t => {
  for (let code = 0; code < 256; code++) {
    const letter = String.fromCharCode(code);
    const isUnreserved = /^[A-Za-z0-9._~-]$/.test(letter);
    for (const hex of [code.toString(16), code.toString(16).toUpperCase()]) {
      const escaped = `/a%${hex.padStart(2, '0')}b`;
      t.equal(plainPath(escaped), isUnreserved ? `/a${letter}b` : escaped, escaped);
    }
  }
  t.equal(plainPath('/%2561'), '/%2561', 'an escaped per cent sign makes no escape');
  t.equal(plainPath('/%6'), '/%6');
  t.end();
});

t.test('a path with needless escapes leads where it leads without them, and is guarded alike', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(okPlugin('neighbour'));
  t.equal((await s.trigger('neighbour/run')).status, 200);
  t.equal((await s.trigger('neighbo%75r/r%75n')).status, 200);
  t.equal((await s.trigger('neighbour%2Frun')).status, 404, 'an escaped slash divides nothing');
  const ask = (path: string, headers: Record<string, string> = {}) => rawRequest(`${s.base}${path}`, headers);
  const authorization = `Bearer ${TOKEN}`;
  t.equal((await ask('/api/admin/plug%69ns', { authorization })).status, 200);
  t.equal((await ask('/api/%61dmin/plugins')).status, 401);
});
