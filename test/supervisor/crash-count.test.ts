import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { CrashCount } from '../../src/supervisor/serving/crash-count.ts';
import { MemoryWatch } from '../../src/supervisor/serving/memory-watch.ts';

const MINUTE = 60_000;
const ROOT = process.env.TEST_DIRECTORY ?? '/tmp';

type How = { code?: number; signal?: NodeJS.Signals; memory?: string; minute?: number; versions?: number[] };

/** The versions that are suspended by one ending after another. */
function suspendedBy(endings: How[]): Array<number[]> {
  const crashes = new CrashCount();
  return endings.map(({ code = null, memory = null, minute = 0, signal = null, versions = [7] }) =>
    crashes
      .note({ code, signal, memory, versions: new Set(versions), atMs: minute * MINUTE, at: new Date(minute * MINUTE) })
      .map(s => s.versionId),
  );
}

t.test('a crash counts when the process ended by a signal of its own making, twice within ten minutes', async t => {
  for (const signal of ['SIGSEGV', 'SIGABRT', 'SIGILL', 'SIGBUS', 'SIGTRAP'] as const)
    t.same(suspendedBy([{ signal }, { signal, minute: 9 }]), [[], [7]], signal);
  t.same(suspendedBy([{ code: 5 }, { code: 134 }]), [[], [7]], 'fatal errors of V8, a signal told by a shell');
  t.same(
    suspendedBy([{ signal: 'SIGSEGV' }, { signal: 'SIGABRT', minute: 11 }]),
    [[], []],
    'not with more between them',
  );
  for (const how of [{ code: 1 }, { code: 0 }, { signal: 'SIGTERM' as const }, { signal: 'SIGINT' as const }])
    t.same(suspendedBy([how, how, how, how]), [[], [], [], []], JSON.stringify(how));
  t.same(
    suspendedBy([
      { signal: 'SIGSEGV', versions: [7, 8] },
      { signal: 'SIGSEGV', versions: [9, 8], minute: 1 },
      { signal: 'SIGSEGV', versions: [8], minute: 2 },
    ]),
    [[], [8], []],
    'the version that ran at both; afterwards it is counted from the beginning',
  );
});

t.test('SIGKILL counts the third time within ten minutes, and only with evidence of a lack of memory', async t => {
  const killed = (minute: number, memory?: string): How => ({
    signal: 'SIGKILL',
    minute,
    ...(memory === undefined ? {} : { memory }),
  });
  t.same(suspendedBy(Array.from({ length: 20 }, (_, k) => killed(k / 10))).flat(), [], 'an operator may kill it');
  const memory = 'the out-of-memory count rose';
  t.same(suspendedBy([killed(0, memory), killed(4, memory), killed(9, memory)]), [[], [], [7]]);
  t.same(suspendedBy([killed(0, memory), killed(4, memory), killed(11, memory)]), [[], [], []]);
  t.same(suspendedBy([killed(0, memory), killed(4), killed(5, memory)]), [[], [], []]);
  t.same(suspendedBy([killed(0, memory), { signal: 'SIGSEGV' }]), [[], []], 'the two kinds are counted apart');
});

t.test('a suspension says what was observed', async t => {
  const crashes = new CrashCount();
  const at = new Date('2026-01-01T10:00:00Z');
  const ending = { code: null, versions: new Set([7]), atMs: 0, at };
  crashes.note({ ...ending, signal: 'SIGSEGV', memory: null });
  t.same(crashes.note({ ...ending, signal: 'SIGABRT', memory: null }), [
    {
      versionId: 7,
      seen: 'ended 2 times within 10 minutes: SIGSEGV at 2026-01-01T10:00:00.000Z, SIGABRT at 2026-01-01T10:00:00.000Z',
      crashes: ['SIGSEGV', 'SIGABRT'].map(signal => ({ signal, at: at.toISOString(), out_of_memory: false })),
    },
  ]);
});

t.test(
  'lack of memory is found in the kill counts and the use of the control group, and in the counts of the machine',
  async t => {
    const root = fs.mkdtempSync(path.join(ROOT, 'memory-'));
    const write = (files: Record<string, string>): void => {
      for (const [file, text] of Object.entries(files)) {
        fs.mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
        fs.writeFileSync(path.join(root, file), text);
      }
    };
    const watch = (): MemoryWatch => new MemoryWatch(path.join(root, 'proc'), path.join(root, 'cgroup'));
    write({
      'proc/self/cgroup': '0::/app\n',
      'proc/meminfo': 'MemTotal: 1000000 kB\nMemFree: 1 kB\nMemAvailable: 900000 kB\n',
      'proc/vmstat': 'nr_free_pages 5\noom_kill 3\n',
    });
    const machine = watch();
    t.equal(machine.explain(0), null);
    write({ 'proc/vmstat': 'nr_free_pages 5\noom_kill 4\n' });
    t.equal(machine.explain(0), 'the out-of-memory count of the machine rose from 3 to 4');
    t.equal(machine.explain(0), null, 'it is reported once');

    write({
      'cgroup/app/memory.max': '104857600\n',
      'cgroup/app/memory.current': '52428800\n',
      'cgroup/app/memory.events': 'low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n',
    });
    const group = watch();
    group.look(100);
    t.equal(group.explain(0), null, 'half of it is used');
    write({ 'cgroup/app/memory.current': '102000000\n' });
    group.look(200);
    write({ 'cgroup/app/memory.current': '1000000\n' });
    t.equal(group.explain(150), 'the memory of the control group stood at 97 of 100 MB');
    t.equal(group.explain(250), null, 'that was too long before');
    write({ 'cgroup/app/memory.events': 'low 0\noom 3\noom_kill 2\n' });
    t.equal(group.explain(250), 'the out-of-memory count of the control group rose from 1 to 2');

    write({
      'proc/self/cgroup': '9:cpu:/x\n5:memory:/box\n',
      'cgroup/memory/box/memory.limit_in_bytes': '104857600\n',
      'cgroup/memory/box/memory.usage_in_bytes': '104857600\n',
      'cgroup/memory/box/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 0\n',
    });
    fs.rmSync(path.join(root, 'cgroup/app'), { recursive: true });
    const old = watch();
    old.look(1);
    t.equal(old.explain(0), 'the memory of the control group stood at 100 of 100 MB', 'version 1');
  },
);
