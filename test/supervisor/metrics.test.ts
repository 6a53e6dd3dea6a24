import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { latenessOf, metricsOf } from '../../src/app/metrics.ts';
import { makeLog } from '../../src/base/log.ts';
import { Durations, gauge } from '../../src/base/metric.ts';
import { openDatabase } from '../../src/db/database.ts';
import { ExecutionCounts } from '../../src/records/execution-counts.ts';
import { makeDatabase } from '../support/database.ts';
import { takePort } from '../support/ports.ts';
import { request } from '../support/service.ts';
import { signalDescendant } from '../support/signals.ts';
import { childPid, gone, ROOT, start } from '../support/started-service.ts';

type Sample = { name: string; labels: Record<string, string>; value: number };

/** Reads the text format of Prometheus; anything that is not of it fails. */
function parse(text: string): { samples: Sample[]; types: Map<string, string> } {
  const samples: Sample[] = [];
  const types = new Map<string, string>();
  for (const line of text.split('\n').filter(l => l !== '')) {
    const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line);
    if (type !== null) types.set(type[1]!, type[2]!);
    else if (!/^# HELP \S+ \S/.test(line)) {
      const [, name, labels = '', value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      if (name === undefined || Number.isNaN(Number(value))) throw new Error(`not a sample: ${line}`);
      const pairs = [...labels.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, k, v]) => [k, v]);
      samples.push({ name, labels: Object.fromEntries(pairs), value: Number(value) });
    }
  }
  return { samples, types };
}

const find = (samples: Sample[], name: string, labels: Record<string, string> = {}): number | undefined =>
  samples.find(s => s.name === name && Object.entries(labels).every(([k, v]) => s.labels[k] === v))?.value;

t.test('the metrics of all serving processes are served together on a port of their own', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'metrics-'));
  const [port, metricsPort] = [await takePort(), await takePort()];
  const run = start(
    directory,
    { BOT_HTTP_PORT: String(port), BOT_METRICS_PORT: String(metricsPort), BOT_SERVING_PROCESSES: '2' },
    ['serve', '--sample'],
  );
  t.teardown(async () => {
    run.child.kill('SIGTERM');
    await run.exited;
    if (!(await gone(directory))) throw new Error('a process is left');
  });
  await run.until(/is ready/);
  const base = `http://127.0.0.1:${port}`;
  const scrape = async (): Promise<ReturnType<typeof parse>> => {
    const { headers, status, text } = await request(`http://127.0.0.1:${metricsPort}/metrics`);
    t.equal(status, 200, text);
    t.match(headers.get('content-type'), /^text\/plain; version=0\.0\.4/);
    return parse(text);
  };
  // Requests on new connections, which the kernel spreads over both processes.
  for (let k = 0; k < 40; k++)
    t.equal((await request(`${base}/api/triggers/http/hello/greet`, { headers: { connection: 'close' } })).status, 200);
  const { samples, types } = await scrape();
  const hello = { plugin: 'hello', trigger: 'greet' };
  t.equal(find(samples, 'plugin_host_executions_total', { ...hello, outcome: 'ok' }), 40, 'those of both added up');
  t.equal(find(samples, 'plugin_host_execution_duration_seconds_count', hello), 40);
  t.equal(find(samples, 'plugin_host_execution_duration_seconds_bucket', { ...hello, le: '+Inf' }), 40);
  t.equal(find(samples, 'plugin_host_queue_wait_seconds_count', hello), 40);
  t.ok((find(samples, 'plugin_host_execution_duration_seconds_sum', hello) ?? 0) > 0);
  t.equal(find(samples, 'plugin_host_serving_processes'), 2);
  t.equal(find(samples, 'plugin_host_plugins'), 1, 'what every process sees is not added up');
  t.equal(find(samples, 'plugin_host_outbox_entries', { state: 'dead' }), 0);
  t.equal(find(samples, 'plugin_host_executions_in_flight'), 0);
  t.equal(find(samples, 'plugin_host_http_requests_total', { kind: 'trigger', status: '200' }), 40);
  t.equal(find(samples, 'plugin_host_http_request_duration_seconds_count', { kind: 'trigger' }), 40);
  t.equal(find(samples, 'plugin_host_hosts', { state: 'serving' }), 1);
  t.equal(find(samples, 'plugin_host_hosts', { state: 'silent' }), 0);
  t.ok((find(samples, 'plugin_host_graph_duration_seconds_count', { call: 'check' }) ?? -1) >= 0);
  t.ok((find(samples, 'plugin_host_resident_memory_bytes') ?? 0) > 2 * 50 * 2 ** 20, 'two processes');
  t.ok((find(samples, 'plugin_host_database_connections', { state: 'idle' }) ?? 0) > 0);
  const [half, most] = ['50', '99'].map(p => find(samples, 'plugin_host_event_loop_delay_seconds', { percentile: p }));
  t.ok((half ?? -1) >= 0 && (most ?? -1) >= (half ?? 0), `turns of the loop are ${half} and ${most} s late`);
  for (const s of samples)
    t.ok(types.has(s.name) || types.has(s.name.replace(/_(bucket|sum|count)$/, '')), `${s.name} has a type`);

  signalDescendant(childPid(run.child.pid, 'serving'), 'SIGKILL');
  await run.until(/the serving process ended \(SIGKILL\)/);
  t.equal((await request(`${base}/api/triggers/http/hello/absent`)).status, 404);
  const later = (await scrape()).samples;
  t.equal(find(later, 'plugin_host_serving_processes_ended_total'), 1);
  t.equal(
    find(later, 'plugin_host_executions_total', { ...hello, outcome: 'ok' }),
    40,
    'what it counted stays counted',
  );
  t.equal(find(later, 'plugin_host_execution_duration_seconds_bucket', { ...hello, le: '+Inf' }), 40);
  t.equal(find(later, 'plugin_host_refusals_total', { code: 'not_found' }), 1);
  t.equal(find(later, 'plugin_host_http_requests_total', { kind: 'trigger', status: '404' }), 1);

  t.equal((await request(`http://127.0.0.1:${metricsPort}/`)).status, 404);
  t.equal((await request(`http://127.0.0.1:${metricsPort}/metrics`, { method: 'POST' })).status, 405);
  t.equal((await request(`${base}/metrics`)).status, 404, 'not where users are');
});

t.test('a process that hangs is left out of a scrape, and the others are shown', async t => {
  const directory = fs.mkdtempSync(path.join(ROOT, 'metrics-'));
  const metricsPort = await takePort();
  const run = start(directory, {
    BOT_HTTP_PORT: String(await takePort()),
    BOT_METRICS_PORT: String(metricsPort),
    BOT_SERVING_PROCESSES: '2',
  });
  t.teardown(() => run.child.kill('SIGKILL'));
  await run.until(/is ready/);
  const serving = childPid(run.child.pid, 'serving');
  signalDescendant(serving, 'SIGSTOP');
  const { text } = await request(`http://127.0.0.1:${metricsPort}/metrics`);
  t.equal(find(parse(text).samples, 'plugin_host_serving_processes'), 1);
  signalDescendant(serving, 'SIGCONT');
  run.child.kill('SIGTERM');
  t.equal(await run.exited, 0);
});

t.test('a feature that hangs or fails is left out of the metrics, and the others are shown', async t => {
  const { drop, url } = await makeDatabase();
  const db = openDatabase(url, 1, () => {});
  t.teardown(async () => {
    await db.close();
    await drop();
  });
  const features = [
    { metrics: () => new Promise<never>(() => {}) },
    { metrics: () => Promise.reject(new Error('its database is away')) },
    {},
    { metrics: () => [gauge('shown', 'Of a feature that answers.', 1)] },
  ];
  // Its timer keeps the process, which nothing else does while a feature hangs.
  const end = new AbortController();
  const late = sleep(60_000, null, { signal: end.signal }).catch(() => null);
  const found = await Promise.race([metricsOf({ db, log: makeLog('silent') }, features), late]);
  end.abort();
  const names = (found ?? []).map(metric => metric.name);
  t.same(names.slice(-1), ['shown']);
  t.ok(names.includes('plugin_host_database_connections'));
});

t.test('a port that is taken ends the start and is named', async t => {
  const taken = net.createServer().listen(0, '127.0.0.1');
  t.teardown(() => taken.close());
  await new Promise(resolve => taken.once('listening', resolve));
  const { port } = taken.address() as net.AddressInfo;
  const run = start(fs.mkdtempSync(path.join(ROOT, 'metrics-')), {
    BOT_HTTP_PORT: String(await takePort()),
    BOT_METRICS_PORT: String(port),
  });
  t.not(await run.exited, 0);
  t.match(run.output(), new RegExp(`metrics\\.port: cannot listen on 127\\.0\\.0\\.1:${port}: .*EADDRINUSE`));
});

t.test('labels are bounded: triggers beyond five hundred are counted together', async t => {
  const counts = new ExecutionCounts();
  const outcome = { kind: 'ok', queueWaitMs: 1, runMs: 2 } as const;
  for (let k = 0; k < 600; k++) counts.add(`p${k % 30}`, `t${Math.floor(k / 30)}`, outcome);
  for (let k = 0; k < 5; k++) counts.add('p0', 't0', outcome);
  const [executions, ran] = counts.metrics();
  t.equal(executions?.values.length, 501);
  t.equal(executions?.values.find(v => v.labels.plugin === '(others)')?.value, 100);
  t.equal(executions?.values.find(v => v.labels.plugin === 'p0' && v.labels.trigger === 't0')?.value, 6);
  t.equal(ran?.values.filter(v => v.metricName?.endsWith('_count')).length, 501);
});

t.test('a duration counts in each bucket that is at least as long', async t => {
  const durations = new Durations();
  for (const ms of [0.1, 0.5, 0.6, 4999, 5001]) durations.add(ms);
  const series = durations.series('x', { a: 'b' });
  const at = (le: string | number): number | undefined => series.find(s => s.labels.le === le)?.value;
  t.same([at(0.0005), at(0.001), at(2.5), at(5), at('+Inf')], [2, 3, 3, 4, 5]);
  t.equal(series.find(s => s.metricName === 'x_count')?.value, 5);
  t.ok(Math.abs((series.find(s => s.metricName === 'x_sum')?.value ?? 0) - 10.0012) < 1e-9);
  t.ok(series.every(s => s.labels.a === 'b'));
});

t.test('a turn of the event loop that came when it was planned is not late', t => {
  const lateMs = [19.5, 20, 35.5].map(ms => Math.round(latenessOf(ms * 1e6) * 1e6) / 1000);
  t.same(lateMs, [0, 0, 15.5]);
  t.end();
});
