import t from 'tap';
import type { Actor } from '../../src/audit/audit-log.ts';
import { LIMITS } from '../../src/base/limits.ts';
import { type Database, openDatabase } from '../../src/db/database.ts';
import { Quarantine } from '../../src/records/quarantine.ts';
import { type StrikeMessage, strikeMessage, ToldStrikes } from '../../src/records/strikes.ts';
import { suspendSuspects } from '../../src/records/suspects.ts';
import { type Json, MANY_LANES, startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { respondText, watPlugin } from '../support/wat.ts';

const BY: Actor = { kind: 'setup', userId: null, name: 'test', requestId: 'r', address: '127.0.0.1' };

/** Traps when the body is `t`, answers `ok` otherwise; two triggers share the handler. */
const MOODY_PARTS = {
  id: 'moody',
  imports: ['respond', 'input_read', 'log'],
  triggers: ['a', 'b'].map(name => ({ name, type: 'http', path: `/${name}`, methods: ['POST'] })),
  body: '(data (i32.const 64) "ok")',
  handle: `(drop (call $input_read (i32.const 1) (i32.const 1024) (i32.const 1)))
    (drop (call $log (i32.const 3) (i32.const 64) (i32.const 2)))
    (if (i32.eq (i32.load8_u (i32.const 1024)) (i32.const 116)) (then unreachable))
    ${respondText(64, 2)} (i32.const 0)`,
};
const moody = watPlugin(MOODY_PARTS);

const BEHIND_PROXY = { BOT_HTTP_TRUSTED_PROXIES: '127.0.0.1' };
const MOODY = { id: 'moody', versionId: 1 };
const LATE = { kind: 'deadline', failure: '' } as const;

const quarantineOf = (t: { fail(text: string): unknown }, db: Database): Quarantine =>
  new Quarantine(
    db,
    () => {},
    error => t.fail(String(error)),
    () => {},
  );

/** Three strikes, of two callers. */
const strike3 = (q: Quarantine, trigger: string, now: number): void => {
  for (const caller of ['user:1', 'user:2', 'user:1']) q.note(MOODY, trigger, caller, LATE, now);
};

t.test('three traps in a row suspend the trigger alone, an administrator sees why and resumes it', async t => {
  const s = await startTestService({ ...MANY_LANES, ...BEHIND_PROXY });
  t.teardown(() => s.stop());
  await s.install(moody);
  const send = (trigger: string, body: string, client: string) =>
    s.trigger(`moody/${trigger}`, { method: 'POST', body, headers: { 'x-forwarded-for': client } });
  // Two clients in turns: what one of them alone breaks is suspended for it alone.
  let turn = 0;
  const ask = async (trigger: string, body: string): Promise<number> =>
    (await send(trigger, body, `203.0.113.${turn++ % 2}`)).status;
  for (const body of ['t', 't', 'n', 't', 't', 'n'])
    t.equal(await ask('a', body), body === 't' ? 502 : 200, 'a success in between forgets the strikes');
  for (let k = 0; k < 3; k++) t.equal(await ask('a', 't'), 502);
  const refused = await send('a', 'n', '203.0.113.9');
  t.equal(refused.status, 503);
  t.match(refused.json, { code: 'quarantined', detail: /suspended for \d+ s/ });
  const retry = Number(refused.headers.get('retry-after'));
  t.ok(retry > 25 && retry <= 30);
  t.equal(await ask('b', 'n'), 200, 'the other trigger goes on');
  const { json } = await s.admin('GET', '/plugins/moody');
  t.match(json.quarantine, [
    {
      trigger: 'a',
      caller: null,
      callers: 2,
      reason: 'trapped',
      failure: /unreachable/,
      cause: /trapped: unreachable/,
    },
  ]);
  t.match((await s.admin('GET', '/plugins')).json.items, [{ id: 'moody', suspended: true }]);
  t.match((await s.admin('POST', '/plugins/moody/triggers/a/resume')).json, { resumed: true });
  t.match((await s.admin('GET', '/plugins')).json.items, [{ id: 'moody', suspended: false }]);
  t.equal(await ask('a', 'n'), 200);
  t.match((await s.admin('POST', '/plugins/moody/triggers/a/resume')).json, { resumed: false });
  t.same((await s.admin('GET', '/plugins/moody')).json.quarantine, []);
});

t.test('three traps of one caller suspend the trigger for that caller alone', async t => {
  const s = await startTestService({ ...MANY_LANES, ...BEHIND_PROXY });
  const other = await startTestService({ ...MANY_LANES, ...BEHIND_PROXY }, s);
  t.teardown(async () => {
    await other.stop();
    await s.stop();
  });
  await s.install(moody);
  const ask = (client: string, body: string, on = s) =>
    on.trigger('moody/a', { method: 'POST', body, headers: { 'x-forwarded-for': client } });
  for (let k = 0; k < 3; k++) t.equal((await ask('2001:db8::1', 't')).status, 502);
  const refused = await ask('2001:db8::2', 'n');
  t.match(refused, { status: 503, json: { code: 'quarantined', detail: /for this caller.* for \d+ s/ } });
  t.equal((await ask('2001:db8:0:1::1', 'n')).status, 200, 'another /64 is another caller');
  t.equal((await ask('203.0.113.7', 'n')).status, 200);
  const suspended = [{ trigger: 'a', caller: '2001:db8:0:0::/64', callers: 1, version_id: null }];
  t.match((await s.admin('GET', '/plugins/moody')).json.quarantine, suspended);
  t.match((await s.admin('GET', '/plugins')).json.items, [{ suspended: false }], 'for all others it goes on');
  for (let k = 0; k < 3; k++) await ask('203.0.113.8', 't', other);
  t.equal((await ask('203.0.113.8', 'n', other)).status, 503);
  // An administrator lifts all of it, on every host.
  t.match((await s.admin('POST', '/plugins/moody/triggers/a/resume')).json, { resumed: true });
  t.equal((await ask('2001:db8::1', 'n')).status, 200);
  for (let tries = 0; tries < 200 && (await ask('203.0.113.8', 'n', other)).status === 503; tries++);
  t.equal((await ask('203.0.113.8', 'n', other)).status, 200);
});

t.test('another version ends what was suspended for the one before, on every host', async t => {
  const s = await startTestService({ ...MANY_LANES, ...BEHIND_PROXY });
  const other = await startTestService({ ...MANY_LANES, ...BEHIND_PROXY }, s);
  t.teardown(async () => {
    await other.stop();
    await s.stop();
  });
  const { wasmKey } = await s.install(moody);
  const ask = async (client: string, body: string, on = s): Promise<number> =>
    (await on.trigger('moody/a', { method: 'POST', body, headers: { 'x-forwarded-for': client } })).status;
  const suspended = async (): Promise<unknown> => (await s.admin('GET', '/plugins/moody')).json.quarantine;
  for (let k = 0; k < 3; k++) await ask('203.0.113.8', 't', other);
  for (let k = 0; k < 4; k++) await ask(`203.0.113.${k % 2}`, 't');
  t.equal(await ask('203.0.113.8', 'n', other), 503);
  t.equal(await ask('203.0.113.9', 'n'), 503);
  await s.admin('POST', '/plugins/moody/install', { wasm_key: wasmKey, config: {} });
  t.match(await suspended(), [{ trigger: 'a' }], 'the same version with another configuration is the same plugin');
  await s.install(watPlugin({ ...MOODY_PARTS, version: '1.0.1' }));
  t.equal(await ask('203.0.113.9', 'n'), 200);
  t.same(await suspended(), []);
  // By itself it ends after 30 s.
  await until(async () => (await ask('203.0.113.8', 'n', other)) === 200, 15_000);
  t.match((await s.admin('GET', '/audit?action=trigger.resume')).json.items, [{ object_id: 'moody/a' }]);
});

t.test('what failed of the version before suspends nothing of the next one', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 1, () => {});
  t.teardown(() => db.close());
  const q = quarantineOf(t, db);
  const isSuspended = (versionId: number): boolean =>
    q.find({ id: 'moody', versionId }, 'a', 'user:1', Date.now()) !== undefined;
  for (let k = 0; k < 2; k++) q.note(MOODY, 'a', 'user:1', LATE, Date.now());
  await q.changeVersion('moody', 2, BY);
  for (let k = 0; k < 3; k++) q.note(MOODY, 'a', 'user:1', LATE, Date.now());
  t.notOk(isSuspended(2), 'executions of the version before end later');
  const later = Date.now() + LIMITS.quarantineWindowMs + 1000;
  const next = { id: 'moody', versionId: 2 };
  for (let k = 0; k < 2; k++) q.note(next, 'a', 'user:1', LATE, Date.now());
  t.notOk(isSuspended(2), 'its strikes are forgotten');
  q.note(next, 'a', 'user:1', LATE, Date.now());
  t.ok(isSuspended(2));
  for (let k = 0; k < 3; k++) q.note({ id: 'moody', versionId: 3 }, 'b', 'user:1', LATE, later);
  t.ok(q.find({ id: 'moody', versionId: 3 }, 'b', 'user:1', later), 'a change that this host has missed');
  await q.close();
});

t.test('strikes count when they follow each other within a minute, for each caller and for all callers', async t => {
  const db = openDatabase('postgresql://nowhere.invalid/x', 1, () => {});
  t.teardown(() => db.close());
  let stored = 0;
  const q = new Quarantine(
    db,
    () => {},
    () => stored++,
    () => {},
  );
  const OK = { kind: 'ok', failure: '' } as const;
  const now = Date.parse('2026-01-01T00:00:00Z');
  const isSuspended = (caller: string, at = now): boolean => q.find(MOODY, 'a', caller, at) !== undefined;
  for (let k = 0; k < 10; k++) {
    // Successes of others: the trigger is not at fault.
    q.note(MOODY, 'a', 'user:1', LATE, now);
    q.note(MOODY, 'a', 'user:2', OK, now);
  }
  t.equal(isSuspended('user:1'), true);
  t.equal(isSuspended('user:2'), false);
  for (let k = 0; k < 10; k++) q.note(MOODY, 'a', 'user:3', k % 3 === 2 ? OK : LATE, now);
  t.equal(isSuspended('user:3'), false, 'a success of its own forgets its strikes');
  q.note(MOODY, 'a', 'user:2', OK, now);
  for (const at of [0, 40_000, 80_000, 120_000]) q.note(MOODY, 'a', 'user:4', LATE, now + at);
  t.equal(isSuspended('user:4', now + 120_000), false, 'never three within a minute');
  q.note(MOODY, 'a', 'user:2', OK, now + 200_000);
  for (const caller of ['user:5', 'user:5', 'user:6']) q.note(MOODY, 'a', caller, LATE, now + 200_000);
  t.equal(isSuspended('user:7', now + 200_000), true, 'at least two callers: for all');
  t.match(q.list('moody', now + 200_000), [{ caller: null, callers: 2 }]);
  await q.close();
  t.equal(stored, 1, 'a suspension that cannot be stored holds on this host');
});

t.test('a few callers that make a trigger fail do not take it from the many for whom it works', async t => {
  const db = openDatabase('postgresql://nowhere.invalid/x', 1, () => {});
  t.teardown(() => db.close());
  const told: StrikeMessage[] = [];
  const made = (tell: (message: StrikeMessage) => void): Quarantine =>
    new Quarantine(
      db,
      () => {},
      () => {},
      tell,
    );
  const q = made(message => void told.push(message));
  const other = made(() => {});
  const now = Date.parse('2026-01-01T00:00:00Z');
  const OK = { kind: 'ok', failure: '' } as const;
  const isSuspended = (caller: string, at: number, of = q): boolean => of.find(MOODY, 'a', caller, at) !== undefined;
  for (let k = 0; k < 5; k++) q.note(MOODY, 'a', `user:${k}`, OK, now);
  // Two callers, again and again, without a success in between.
  for (let k = 0; k < 40; k++) q.note(MOODY, 'a', k % 2 === 0 ? 'address 1' : 'address 2', LATE, now + 1000 + k);
  t.same(
    ['user:1', 'user:new', 'address 1', 'address 2'].map(caller => isSuspended(caller, now + 2000)),
    [false, false, true, true],
  );
  for (const message of told) other.hearStrike(message);
  t.equal(isSuspended('user:1', now + 2000, other), false, 'nor in a process that served none of the many');
  // The failing callers reach a process that served them alone: another one answers its first strike.
  const [alone, many]: [Quarantine, Quarantine] = [
    made(message => many.hearStrike(message)),
    made(message => alone.hearStrike(message)),
  ];
  for (let k = 0; k < 5; k++) many.note(MOODY, 'a', `user:${k}`, OK, now);
  for (let k = 0; k < 40; k++) alone.note(MOODY, 'a', k % 2 === 0 ? 'address 1' : 'address 2', LATE, now + 1000 + k);
  for (const process of [alone, many])
    t.same([isSuspended('user:1', now + 2000, process), isSuspended('address 1', now + 2000, process)], [false, true]);
  // It breaks: those for whom it worked fail one after the other.
  const failsFor = (count: number): void => {
    for (let k = 0; k < count; k++) q.note(MOODY, 'a', `user:${k}`, LATE, now + 3000);
  };
  failsFor(1);
  t.equal(isSuspended('user:new', now + 3000), false);
  failsFor(5);
  t.equal(isSuspended('user:new', now + 3000), true, 'it is broken for all');
  // What worked longer than a minute ago says nothing.
  const later = now + LIMITS.quarantineMs * 3;
  for (const caller of ['address 3', 'address 4', 'address 3']) q.note(MOODY, 'a', caller, LATE, later);
  t.equal(isSuspended('user:new', later), true);
});

t.test('of two readings the one that began last counts, whichever is answered last', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  await s.install(moody);
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  await db.query(
    `INSERT INTO plugin_quarantine (plugin_id, trigger_name, version_id, since, until, level, cause, callers, reason, details)
     VALUES ('moody', 'a', 0, now(), NULL, 1, 'x', 2, 'trapped', '{"failure": "x", "version": null, "crashes": []}')`,
  );
  let release = (): void => {};
  let reads = 0;
  const slow = new Proxy(db, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name !== 'query' || typeof value !== 'function') return value;
      return async (...given: unknown[]) => {
        const answer: unknown = await value.apply(target, given);
        if (++reads === 1) await new Promise<void>(resolve => (release = resolve));
        return answer;
      };
    },
  });
  const q = quarantineOf(t, slow);
  const first = q.load();
  await until(() => reads === 1);
  await db.query('DELETE FROM plugin_quarantine');
  const second = q.load();
  setTimeout(() => release(), 50);
  await Promise.all([first, second]);
  t.equal(q.find(MOODY, 'a', 'user:1', Date.now()), undefined, 'what was resumed stays so');
});

t.test('a suspended command is explained, and resumed like a trigger', async t => {
  const s = await startTestService();
  t.teardown(() => s.stop());
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  await s.install(watPlugin({ id: 'desk', triggers: [{ name: 'menu', type: 'messenger' }], handle: '(i32.const 0)' }));
  const user = Number((await s.admin('POST', '/users', { display_name: 'Ada' })).json.id);
  await db.query(
    `INSERT INTO plugin_quarantine (plugin_id, trigger_name, version_id, since, until, level, cause, callers, reason, details)
     VALUES ('desk', 'menu', 0, now(), now() + interval '1 hour', 1, 'trapped: x', 2, 'trapped', '{"failure": "x", "version": null, "crashes": []}')`,
  );
  await db.query("SELECT pg_notify('plugin_changed', 'desk')");
  const why = async (): Promise<Json> =>
    (await s.admin('POST', '/access/explain', { plugin: 'desk', user, command: 'menu' })).json;
  await until(async () => (await why()).allowed === false);
  t.match(await why(), { status: 503, suspension: { cause: 'trapped: x' } });
  const resume = (name: string) => s.admin('POST', `/plugins/desk/triggers/${name}/resume`);
  t.match((await resume('menu')).json, { trigger: 'menu', resumed: true });
  t.match(await why(), { allowed: true, suspension: null });
  t.match(await resume('none'), { status: 404, json: { detail: /has no trigger "none"; it has menu/ } });
});

t.test('the memory for callers is bounded', async t => {
  const db = openDatabase('postgresql://nowhere.invalid/x', 1, () => {});
  t.teardown(() => db.close());
  const q = quarantineOf(t, db);
  const now = Date.parse('2026-01-01T00:00:00Z');
  for (let k = 0; k < LIMITS.callersCountedMax + 1; k++) {
    for (let strike = 0; strike < 3; strike++) q.note(MOODY, 'a', `user:${k}`, LATE, now);
    q.note(MOODY, 'a', 'user:good', { kind: 'ok', failure: '' }, now);
  }
  t.equal(q.find(MOODY, 'a', 'user:0', now), undefined, 'the one suspended longest ago is let in again');
  t.not(q.find(MOODY, 'a', 'user:1', now), undefined);
  t.equal(q.list('moody', now).length, LIMITS.listLimitMax);
  q.sweep(now + 30_000 + LIMITS.quarantineMs + 1);
  t.same(q.list('moody', now), []);
});

t.test(
  'a version that crashed the service is suspended for an hour, then tried again, then until it is resumed',
  async t => {
    const s = await startTestService();
    t.teardown(() => s.stop());
    await s.install(moody);
    const db = openDatabase(s.databaseUrl, 2, () => {});
    t.teardown(() => db.close());
    const q = quarantineOf(t, db);
    const versionId = s.service.registry.find('moody')?.versionId ?? 0;
    const find = (version: number, inMs: number) =>
      q.find({ id: 'moody', versionId: version }, 'a', 'user:1', Date.now() + inMs);
    const crashes = [{ signal: 'SIGSEGV', at: '2026-01-01T10:00:00.000Z', out_of_memory: false }];
    await suspendSuspects(db, q, [{ versionId, seen: 'ended by SIGSEGV twice', crashes }]);
    t.match(find(versionId, 0), {
      reason: 'version_crashed',
      version: '1.0.0',
      crashes,
      cause: /version 1.0.0 was running when the serving process ended by SIGSEGV twice/,
    });
    t.not(find(versionId, 59 * 60_000), undefined);
    t.equal(find(versionId, 61 * 60_000), undefined, 'after an hour it is tried again');
    t.equal(find(versionId + 1, 0), undefined, 'another version is not meant');
    await suspendSuspects(db, q, [{ versionId, seen: 'ended by SIGSEGV twice', crashes }]);
    t.equal(find(versionId, 61 * 60_000), undefined, 'another process that hears of the same crash changes nothing');
    await db.query("UPDATE plugin_quarantine SET until = now() - interval '1 minute'");
    await q.load();
    await suspendSuspects(db, q, [{ versionId, seen: 'ended by SIGSEGV twice', crashes }]);
    t.match(find(versionId, 365 * 86_400_000), {
      until: null,
      crashes,
      cause: /this is the second time, after a suspension of one hour/,
    });
    // The service hears of both suspensions, one after the other.
    const ask = () => s.trigger('moody/a', { method: 'POST', body: 'n' });
    let answer = await ask();
    while (!String(answer.json.detail).includes('until')) answer = await ask();
    t.match(answer, {
      status: 503,
      json: { detail: /crashed the service and is suspended until an administrator resumes it/ },
    });
    t.match((await s.admin('GET', '/plugins/moody')).json.quarantine, [
      { trigger: null, version_id: versionId, until: null },
    ]);
    const waiting = (await s.admin('GET', '/attention')).json.items as Json[];
    t.equal(waiting.find(w => w.kind === 'suspended')?.detail, 'moody', 'without the name of a trigger');
    const next = watPlugin({ ...MOODY_PARTS, version: '1.0.1' });
    await s.install(next);
    t.equal((await s.trigger('moody/a', { method: 'POST', body: 'n' })).status, 200, 'a new version is let in at once');
  },
);

t.test('a suspension lasts twice as long every time, up to ten minutes', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  await s.install(moody);
  const db = openDatabase(s.databaseUrl, 2, () => {});
  t.teardown(() => db.close());
  const q = quarantineOf(t, db);
  let now = Date.parse('2026-01-01T00:00:00Z');
  const seconds: number[] = [];
  for (let k = 0; k < 7; k++) {
    strike3(q, 'a', now);
    const until = q.find(MOODY, 'a', 'any caller', now)?.until?.getTime() ?? 0;
    seconds.push((until - now) / 1000);
    now = until + 1;
    t.equal(q.find(MOODY, 'a', 'any caller', now), undefined, 'it ends by itself');
  }
  t.same(seconds, [30, 60, 120, 240, 480, 600, 600]);
  now += 601_000;
  strike3(q, 'a', now);
  t.equal(
    ((q.find(MOODY, 'a', 'any caller', now)?.until?.getTime() ?? 0) - now) / 1000,
    30,
    'after ten minutes without a strike the count starts at zero',
  );
  for (const at of [0, 61_000, 122_000]) q.note(MOODY, 'b', `user:${at}`, LATE, now + at);
  t.equal(q.find(MOODY, 'b', 'any caller', now + 122_000), undefined, 'three in three minutes are not three in one');
  await q.close();
});

t.test('a resume during the writing of a suspension wins', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  await s.install(moody);
  const db = openDatabase(s.databaseUrl, 4, () => {});
  t.teardown(() => db.close());
  const q = quarantineOf(t, db);
  for (let round = 0; round < 20; round++) {
    const now = Date.now();
    strike3(q, 'a', now);
    t.equal(await q.resume('moody', 'a', BY), true);
    await q.close();
    const { rows } = await db.query('SELECT 1 FROM plugin_quarantine');
    t.same(rows, []);
  }
});

t.test('execution records are filtered, paged and show their log', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  await s.install(moody);
  for (const [trigger, body] of [
    ['a', 'n'],
    ['b', 't'],
    ['b', 'n'],
    ['a', 't'],
  ] as const)
    await s.trigger(`moody/${trigger}`, {
      method: 'POST',
      body,
      headers: { 'x-request-id': `request-${trigger}-${body}` },
    });
  const list = async (query: string): Promise<string[]> =>
    ((await s.admin('GET', `/plugins/moody/executions${query}`)).json.items as Array<{ request_id: string }>).map(
      r => r.request_id,
    );
  t.same(await list(''), ['request-a-t', 'request-b-n', 'request-b-t', 'request-a-n'], 'newest first');
  t.same(await list('?outcome=trapped'), ['request-a-t', 'request-b-t']);
  t.same(await list('?trigger=b&outcome=ok'), ['request-b-n']);
  t.same(await list(`?since=${new Date(Date.now() + 60_000).toISOString()}`), []);
  t.same(await list('?since=2020-01-01'), ['request-a-t', 'request-b-n', 'request-b-t', 'request-a-n']);
  const page = await s.admin('GET', '/plugins/moody/executions?limit=3');
  t.same(await list(`?limit=3&cursor=${String(page.json.next_cursor)}`), ['request-a-n']);
  const [first] = page.json.items as Array<{ id: number }>;
  t.match((await s.admin('GET', `/plugins/moody/executions/${first?.id}`)).json, {
    outcome: 'trapped',
    status: 502,
    principal: 'public',
    version: '1.0.0',
    host_calls: 2,
    peak_pages: 1,
    failure: /unreachable/,
    log: [{ level: 'error', text: 'ok' }],
  });
  t.match(await s.admin('GET', '/plugins/moody/executions?outcome=bad'), {
    status: 422,
    json: { errors: [{ pointer: 'query:outcome' }] },
  });
  t.match(await s.admin('GET', '/plugins/moody/executions?since=yesterday'), {
    status: 422,
    json: { errors: [{ pointer: 'query:since' }] },
  });
  t.equal((await s.admin('GET', '/plugins/moody/executions/999999')).status, 404);
  t.equal((await s.admin('GET', '/plugins/moody/executions/x')).status, 404);
});

t.test('successes are sampled, failures and executions that logged an error are all kept', async t => {
  const s = await startTestService(MANY_LANES);
  t.teardown(() => s.stop());
  await s.install(moody);
  await s.install(
    watPlugin({
      id: 'plain',
      imports: ['respond'],
      body: '(data (i32.const 64) "ok")',
      handle: `${respondText(64, 2)} (i32.const 0)`,
    }),
  );
  await Promise.all(Array.from({ length: 60 }, () => s.trigger('moody/a', { method: 'POST', body: 'n' })));
  await Promise.all(Array.from({ length: 60 }, () => s.trigger('plain/run')));
  const count = async (id: string): Promise<number> =>
    ((await s.admin('GET', `/plugins/${id}/executions?limit=200`)).json.items as unknown[]).length;
  t.equal(await count('moody'), 60);
  const sampled = await count('plain');
  t.ok(sampled >= 5 && sampled < 60, `${sampled} of 60 kept`);
});

t.test('a process that starts counts the strikes as the others do', async t => {
  const told = new ToldStrikes();
  const now = Date.parse('2026-01-01T00:00:00Z');
  const of = { pluginId: 'p', trigger: 'a' };
  const strike = (caller: string, ms: number): StrikeMessage =>
    strikeMessage.parse({
      ...{
        kind: 'strike',
        ...of,
        caller,
        reason: 'trapped',
        failure: 'x',
        cause: 'trapped: x',
        atMs: now + ms,
        well: 0,
      },
    });
  const kinds = (): string[] => told.list(now + 10).map(m => ('caller' in m ? `${m.kind} ${m.caller}` : m.kind));
  for (const message of [strike('b', 1), strike('c', 2)]) told.add(message);
  // Of the two callers one succeeds: the row of all is over, the strike of the other still counts for that one.
  told.add({ kind: 'strikes_forgotten', ...of, caller: 'b' });
  told.add({ kind: 'strikes_forgotten', ...of, caller: 'b' });
  told.add({ kind: 'callers_well', ...of, well: 3, atMs: now });
  told.add(strike('b', 3));
  t.same(kinds(), ['strike c', 'strikes_forgotten b', 'strike b']);
  t.same(
    told.list(now + 10).flatMap(m => ('well' in m ? m.well : [])),
    [3, 0],
    'with the callers for whom it works elsewhere, as the others were answered',
  );
  const db = openDatabase('postgresql://nowhere.invalid/x', 1, () => {});
  t.teardown(() => db.close());
  const ignore = (): void => {};
  const q = new Quarantine(db, ignore, ignore, ignore);
  for (const message of told.list(now + 10)) q.hearStrike(message);
  q.hearStrike(strike('d', 4));
  const isSuspended = (): boolean => q.find({ id: 'p', versionId: 1 }, 'a', 'new', now + 20) !== undefined;
  t.equal(isSuspended(), false, 'two in a row');
  q.hearStrike(strike('e', 5));
  t.equal(isSuspended(), true, 'three in a row');
  told.add({ kind: 'strikes_forgotten', ...of, caller: 'c' });
  told.add({ kind: 'strikes_forgotten', ...of, caller: 'b' });
  t.same(kinds(), [], 'nothing is kept of what nothing is left of');
  told.add(strike('b', 6));
  told.add({ kind: 'trigger_resumed', ...of });
  t.same(kinds(), []);
});
