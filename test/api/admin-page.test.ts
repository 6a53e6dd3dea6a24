import t from 'tap';
import { request, startTestService } from '../support/service.ts';

t.test('the setup link leads to a page that loads nothing from elsewhere', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const page = await request(`${s.base}/admin/`);
  t.equal(page.status, 200);
  t.match(page.headers.get('content-type'), 'text/html');
  t.match(page.headers.get('content-security-policy'), /default-src 'self'.*frame-ancestors 'none'/);
  for (const [, path] of page.text.matchAll(/(?:src|href)="([^"]+)"/g)) {
    t.match(path, /^\/admin\//);
    t.equal((await request(`${s.base}${path ?? ''}`)).status, 200, path ?? '');
  }
  for (const path of ['/', '/admin']) t.equal((await request(`${s.base}${path}`)).headers.get('location'), '/admin/');
  t.equal((await request(`${s.base}/admin/../package.json`)).status, 404);
});
