import t from 'tap';
import { withoutAnswer } from '../../src/abi/execution-outcome.ts';
import { LIMITS } from '../../src/base/limits.ts';
import { makeLog } from '../../src/base/log.ts';
import { ExecutionLog, type LoggedExecution } from '../../src/records/execution-log.ts';

type Line = Record<string, unknown>;

/** A log that is kept, as objects. */
function keptLog(): { lines: Line[]; log: ReturnType<typeof makeLog> } {
  const lines: Line[] = [];
  return { lines, log: makeLog('debug', { write: text => void lines.push(JSON.parse(text) as Line) }) };
}

const RUN: LoggedExecution = {
  plugin: { id: 'p', version: '1.0.0' },
  trigger: 'run',
  kind: 'http',
  requestId: 'request-1',
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  caller: 'user:5',
};

t.test('each trap and each stopped execution is logged with its facts; a few lines per trigger and minute', async t => {
  const { lines, log } = keptLog();
  const executions = new ExecutionLog(log, false);
  executions.note(RUN, withoutAnswer('trapped', 'unreachable\n  at wasm', 0, 12));
  executions.note(RUN, withoutAnswer('deadline', 'the execution did not end before its deadline', 0, 5000));
  executions.note({ ...RUN, trigger: 'other' }, withoutAnswer('memory_budget', 'used up', 0, 1));
  for (const kind of ['ok', 'handler_error', 'no_slot', 'queue_full', 'invalid_response'] as const)
    executions.note(RUN, withoutAnswer(kind, 'x', 0, 0));
  const facts = {
    plugin: 'p',
    version: '1.0.0',
    trigger: 'run',
    request_id: 'request-1',
    trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
    caller: 'user:5',
  };
  t.match(lines, [
    { ...facts, msg: 'execution trapped', outcome: 'trapped', failure: 'unreachable', run_ms: 12 },
    { ...facts, msg: 'execution stopped', outcome: 'deadline', run_ms: 5000 },
    { ...facts, msg: 'execution stopped', outcome: 'memory_budget', trigger: 'other' },
  ]);
  t.equal(lines.length, 3);
  for (let k = 0; k < 100; k++) executions.note(RUN, withoutAnswer('trapped', 'unreachable', 0, 1));
  t.equal(lines.filter(l => l.trigger === 'run').length, LIMITS.logLinesPerTriggerMinute);
  for (let k = 0; k < 100; k++)
    executions.note({ ...RUN, kind: 'call', trigger: `call:f${k}` }, withoutAnswer('trapped', 'x', 0, 1));
  t.equal(lines.filter(l => String(l.trigger).startsWith('call:')).length, LIMITS.logLinesPerTriggerMinute);
});

t.test('suppressed lines are counted in the next line or in a separate one', async t => {
  const { lines, log } = keptLog();
  let now = 0;
  const executions = new ExecutionLog(log, false, () => now);
  const trap = (n: number): void => {
    for (let k = 0; k < n; k++) executions.note(RUN, withoutAnswer('trapped', 'x', 0, 1));
  };
  trap(12);
  now = 61_000;
  trap(1);
  t.match(lines.at(-1), { msg: 'execution trapped', left_out: 7 });
  trap(10);
  now = 125_000;
  const before = lines.length;
  executions.sweep();
  t.match(lines.slice(before), [{ msg: 'execution log lines left out', plugin: 'p', trigger: 'run', left_out: 6 }]);
});

t.test('log.plugins puts the lines of plugins into the log, so many bytes an hour', async t => {
  const of = (on: boolean, text: string, times: number): Line[] => {
    const { lines, log } = keptLog();
    const executions = new ExecutionLog(log, on);
    const outcome = {
      ...withoutAnswer('ok', '', 0, 1),
      log: [
        { level: 1, text },
        { level: 3, text: 'bad' },
      ],
    };
    for (let k = 0; k < times; k++) executions.note(RUN, outcome);
    return lines;
  };
  t.same(of(false, 'hello', 1), []);
  t.match(of(true, 'hello', 1), [
    {
      level: 30,
      msg: 'plugin log',
      text: 'hello',
      plugin: 'p',
      trigger: 'run',
      request_id: 'request-1',
      trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
    },
    { level: 50, msg: 'plugin log', text: 'bad' },
  ]);
  const flood = of(true, 'x'.repeat(64 * 1024), 400);
  t.match(flood.at(-1), { level: 40, msg: 'plugin log left out for this hour' });
  t.equal(flood.filter(l => l.msg !== 'plugin log').length, 1);
  t.ok(flood.length < 400);
});

t.test('a suspension is logged with its cause', async t => {
  const { lines, log } = keptLog();
  const executions = new ExecutionLog(log, false);
  const s = {
    ...{
      pluginId: 'p',
      trigger: 'run',
      versionId: 0,
      caller: null,
      callers: 2,
      level: 0,
      cause: 'trapped: unreachable',
    },
    ...{ reason: 'trapped' as const, failure: 'unreachable', version: null, crashes: [] },
    ...{ since: new Date(0), until: new Date(30_000) },
  };
  executions.suspended(s);
  for (let k = 0; k < 20; k++) executions.suspended({ ...s, caller: `user:${k}`, callers: 1 });
  executions.suspended({ ...s, trigger: '', versionId: 7, until: null });
  t.match(lines[0], { msg: 'trigger suspended', plugin: 'p', trigger: 'run', callers: 2, cause: /unreachable/ });
  t.match(lines[1], { msg: 'trigger suspended', caller: 'user:0' });
  t.match(lines.at(-1), { msg: 'plugin suspended', level: 50, version_id: 7, until: null });
  t.equal(lines.length, 2 + LIMITS.logLinesPerTriggerMinute, 'a stranger with many addresses does not fill the log');
});
