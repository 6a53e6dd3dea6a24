import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { ROWS } from '../../src/config/keys.ts';
import { configurationReference } from '../../src/config/reference.ts';

const PAGE = path.resolve(import.meta.dirname, '../../docs/configuration.md');

t.test('the page of the configuration is what its rows give', async t => {
  t.equal(fs.readFileSync(PAGE, 'utf8'), configurationReference(), 'npm run docs writes the page again');
});

t.test('each key has an entry with its environment name, default and values', async t => {
  const page = configurationReference();
  for (const key of Object.keys(ROWS)) t.ok(page.includes(`\n### ${key}\n`), key);
  t.match(
    page,
    /### http\.port\n\nPort .*\n\n- Environment: `BOT_HTTP_PORT`\n- Default: `8080`\n- Values: a number from 0 to 65535/,
  );
  t.match(page, /### admin\.setup\n[^#]*- Values: one of `token`, `loopback`, `open`/);
  t.match(page, /### http\.max_body\n[^#]*- Default: `10485760` \(10 MiB\)/);
  t.match(page, /### smtp\.password\n[^#]*- Secret: never shown/);
  t.match(
    page,
    /### execution\.memory_budget_mb\n[^#]*- Default: half of the memory of the machine, or of the control group the service runs in/,
    'the same on each machine',
  );
});
