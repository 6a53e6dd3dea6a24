import { startService } from '../../src/app/service.ts';
import { makeLog } from '../../src/base/log.ts';
import { loadConfig } from '../../src/config/load.ts';
import { TOKEN } from './service.ts';

/** A service as a process of its own, for tests that end it: `BOT_...` in its environment, its port on the first line. */
const service = await startService({
  config: loadConfig(null, process.env),
  log: makeLog(process.env.TEST_LOG ?? 'silent'),
  setupToken: TOKEN,
  noteFile: null,
  suspects: [],
  pages: null,
});
console.log(service.server.port);
