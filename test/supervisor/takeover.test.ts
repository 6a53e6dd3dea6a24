import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { makeDatabase } from '../support/database.ts';
import { startGraphStore } from '../support/graph.ts';
import { takePort } from '../support/ports.ts';
import { request } from '../support/service.ts';
import { signalDescendant } from '../support/signals.ts';
import { childPid, gone, ROOT, startProgram } from '../support/started-service.ts';
import { until } from '../support/until.ts';
import { Wire } from '../support/wire.ts';

/** A reload goes on as the program that is installed by then (docs/operating.md "Upgrade"). */
const PROJECT = path.resolve(import.meta.dirname, '../..');

const work = fs.mkdtempSync(path.join(ROOT, 'takeover-'));
t.teardown(() => fs.rmSync(work, { recursive: true, force: true }));

/** A copy of the sources as a release of its own. */
function releaseOf(version: string): string {
  const directory = path.join(work, version);
  for (const name of ['bin', 'src', 'workers', 'sql', 'sdk', 'examples', 'admin', 'package.json'])
    fs.cpSync(path.join(PROJECT, name), path.join(directory, name), {
      recursive: true,
      filter: from => path.basename(from) !== 'node_modules',
    });
  fs.symlinkSync(path.join(PROJECT, 'node_modules'), path.join(directory, 'node_modules'));
  const manifest = path.join(directory, 'package.json');
  fs.writeFileSync(
    manifest,
    fs.readFileSync(manifest, 'utf8').replace(/"version": "[^"]+"/, `"version": "${version}"`),
  );
  return directory;
}

/** Leads the link `current` to a release, as an upgrade does. */
function use(version: string): void {
  const link = path.join(work, 'current.new');
  fs.symlinkSync(version, link);
  fs.renameSync(link, path.join(work, 'current'));
}

const ENTRY = path.join(work, 'current/bin/plugin-host.js');

/** Whether an answer is 200 with the whole of its JSON. */
function isWhole(answer: string): boolean {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  try {
    return head.startsWith('HTTP/1.1 200 ') && JSON.parse(body) !== null;
  } catch {
    return false;
  }
}

/** Asks again and again, on connections of their own, and counts what is not answered with 200. */
function callers(port: number, path: string): { stop(): Promise<{ asked: number; failed: string[] }> } {
  let isOver = false;
  let asked = 0;
  const failed: string[] = [];
  const call = async (): Promise<void> => {
    while (!isOver) {
      asked++;
      // By hand: a client of this process would take more of the processors than the service it asks.
      const wire = new Wire(`http://127.0.0.1:${port}`);
      await wire.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`).catch(() => {});
      const answer = await wire.closed();
      if (!isWhole(answer)) failed.push(answer === '' ? 'no answer' : answer);
      // Four that never rest would take the processors that the reload needs.
      await sleep(10);
    }
  };
  const all = Promise.all(Array.from({ length: 4 }, call));
  return {
    async stop() {
      isOver = true;
      await all;
      return { asked, failed };
    },
  };
}

for (const embedded of [false, true])
  t.test(
    `a reload goes on as the new release, with ${embedded ? 'embedded stores' : 'stores of the machine'}`,
    async t => {
      for (const version of ['1.0.0', '1.1.0', '1.2.0'])
        if (!fs.existsSync(path.join(work, version))) releaseOf(version);
      use('1.0.0');
      const data = fs.mkdtempSync(path.join(ROOT, 'takeover-data-'));
      const port = await takePort();
      const metrics = await takePort();
      const env: Record<string, string> = {
        BOT_HTTP_PORT: String(port),
        BOT_METRICS_PORT: String(metrics),
        BOT_SERVING_PROCESSES: '2',
      };
      if (!embedded) {
        const database = await makeDatabase();
        t.teardown(() => database.drop());
        const { spicedb } = await startGraphStore(t);
        env.BOT_DATABASE_URL = database.serviceUrl;
        env.BOT_DATABASE_OWNER_URL = database.url;
        env.BOT_SPICEDB_ENDPOINT = spicedb.endpoint;
        env.BOT_SPICEDB_TLS = 'false';
      }
      const run = startProgram(process.execPath, [ENTRY, 'serve', '--sample'], data, env);
      t.teardown(() => run.child.kill('SIGKILL'));
      await run.until(/plugin host is ready/);
      const supervisor = run.child.pid ?? 0;
      const reload = async (): Promise<{ status: number | null; text: string }> => {
        const command = startProgram(process.execPath, [ENTRY, 'reload'], data, env);
        return { status: await command.exited, text: command.output() };
      };
      const runs = async (): Promise<string> => {
        const { text } = await request(`http://127.0.0.1:${metrics}/metrics`);
        return /plugin_host_info\{version="([^"]+)"/.exec(text)?.[1] ?? text.slice(0, 200);
      };
      const where = '/api/triggers/http/hello/greet?name=world';
      const url = `http://127.0.0.1:${port}${where}`;
      t.equal(await runs(), '1.0.0');

      const under = callers(port, where);
      use('1.1.0');
      const done = await reload();
      t.equal(done.status, 0, done.text);
      t.match(done.text, /all serving processes were replaced/);
      t.match(done.text, /replacing serving process 2 of 2/, 'the command hears of each step from the new program');
      t.equal(await runs(), '1.1.0');
      const program = fs.readFileSync(`/proc/${supervisor}/cmdline`, 'latin1');
      t.match(program, '/1.1.0/bin/plugin-host.js', 'the same process, another program');
      t.match(fs.readFileSync(`/proc/${childPid(supervisor, 'serving')}/cmdline`, 'latin1'), '/1.1.0/src/main.ts');

      // Back to the release before, by way of the same link.
      use('1.0.0');
      t.equal((await reload()).status, 0);
      t.equal(await runs(), '1.0.0');

      // A release that cannot start: the program before takes back, and says why.
      const broken = path.join(work, '1.2.0/src/app/serving.ts');
      use('1.2.0');
      if (!embedded) {
        // The second of its processes: the first one, which serves by then, is put back as well.
        const first = path.join(data, 'the-first-serves');
        const own = fs.readFileSync(broken, 'utf8');
        const counts = `if (fs.existsSync('${first}')) process.exit(3);\n  fs.writeFileSync('${first}', '');\n`;
        fs.writeFileSync(broken, own.replace(/(async function serve\(.*\n)/, `$1  ${counts}`));
        t.match(await reload(), {
          status: 1,
          text: /could not reload: the serving process ended at start \(exit code 3\)/,
        });
        t.ok(fs.existsSync(first));
        const commands = (): string =>
          execFileSync('ps', ['--ppid', String(supervisor), '-o', 'args='], { encoding: 'utf8' });
        await until(() => !commands().includes('/1.2.0/'));
      }
      fs.writeFileSync(broken, 'export function runServing(): void {\n  process.exit(3);\n}\n');
      const refused = await reload();
      t.equal(refused.status, 1);
      t.match(refused.text, /the service could not reload: the serving process ended at start \(exit code 3\)/);
      t.equal(await runs(), '1.0.0', 'the release before goes on');
      fs.writeFileSync(path.join(work, '1.2.0/src/cli/local/serve.ts'), 'throw new Error("damaged");\n');
      t.match((await reload()).text, /cannot take over/, 'one that is damaged is refused before anything changes');
      t.equal(await runs(), '1.0.0');

      const { asked, failed } = await under.stop();
      t.same(failed, [], 'no request failed');
      t.ok(asked > 100, `${asked} requests`);
      const children = execFileSync('ps', ['--ppid', String(supervisor), '-o', 'stat='], { encoding: 'utf8' });
      t.notMatch(children, /Z/, 'every process that ended was waited for');

      // It looks after processes it has not started itself.
      const before = childPid(supervisor, 'serving');
      signalDescendant(before, 'SIGKILL');
      await run.until(/the serving process ended \(SIGKILL\)/);
      t.equal((await request(url)).status, 200);
      run.child.kill('SIGTERM');
      t.equal(await run.exited, 0);
      t.ok(await gone(data), 'nothing is left');
      fs.rmSync(path.join(work, '1.2.0'), { recursive: true });
      fs.rmSync(data, { recursive: true, force: true });
    },
  );
