import t from 'tap';
import type { ExecutionOutcome } from '../../src/abi/execution-outcome.ts';
import { HOST_ERROR } from '../../src/abi/host-functions.ts';
import { LIMITS } from '../../src/base/limits.ts';
import { recordedExecution } from '../../src/records/recorded-execution.ts';
import { Recording } from '../../src/records/recording.ts';
import { RecordingAllowance } from '../../src/records/recording-allowance.ts';

/** What a recording hides, it hides everywhere (docs/plugins.md "Recordings"). */

const CONFIGURED = 'a very "secret" key';
const TOKEN = 'tok-1234567890';
const PASSWORD = 'pass-9876543210';
const MAIL = 'ada@example.org';
const SURNAME = 'Константинопольская';
const PHONE = '+7 999 123-45-67';
const SECRETS = [CONFIGURED, TOKEN, PASSWORD, MAIL, SURNAME, PHONE];
const bytes = (text: string): Uint8Array => Buffer.from(text);
/** Bytes that are no text. */
const binary = (text: string): Uint8Array => Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text)]);

const OUTCOME: ExecutionOutcome = {
  kind: 'ok',
  status: 200,
  headers: `Location\0/next?token=${TOKEN}\0`,
  body: binary(TOKEN),
  log: [],
  output: new Uint8Array(),
  failure: `no luck with ${TOKEN}`,
  hostCalls: 0,
  peakPages: 1,
  queueWaitMs: 0,
  runMs: 1,
};

function make(): Recording {
  const event = {
    kind: 'http',
    raw_query: `n=1&token=${TOKEN}`,
    query: { token: TOKEN, n: '1' },
    query_all: { token: [TOKEN], n: ['1'] },
    headers: { authorization: `Bearer ${TOKEN}`, 'x-request-id': 'r-1' },
  };
  return new Recording({
    plugin: {
      id: 'p',
      version: '1',
      sha256: 'f'.repeat(64),
      config: { key: CONFIGURED, url: `https://x.example/${TOKEN}` },
    },
    trigger: 'run',
    secretFields: ['key'],
    event: JSON.stringify(event),
    body: bytes(
      JSON.stringify({ password: PASSWORD, note: `write to ${MAIL}`, student: { last_name: SURNAME, phone: PHONE } }),
    ),
  });
}

t.test('a host call that fails in the service is recorded as the guest saw it', async t => {
  const recording = make();
  const refuse = (): never => {
    throw new Error('the host');
  };
  t.throws(() => recording.answer('kv_get', ['a'], refuse), { message: 'the host' });
  await t.rejects(async () => await recording.answer('kv_get', ['b'], async () => refuse()), { message: 'the host' });
  t.same(await recording.answer('kv_get', ['c'], async () => ({ code: 1, data: 'x' })), { code: 1, data: 'x' });
  const { calls } = recordedExecution.parse(JSON.parse(String(recording.pack(OUTCOME, 200))));
  t.match(calls, [
    { arguments: ['a'], code: HOST_ERROR.internal, data: null },
    { arguments: ['b'], code: HOST_ERROR.internal, data: null },
    { arguments: ['c'], code: 1, data: 'x' },
  ]);
});

t.test('a value that is masked in one place appears nowhere in the recording', t => {
  const recording = make();
  const rows = (cursor: number | null, first: boolean): Uint8Array =>
    bytes(
      `{${first ? '"columns":[{"name":"id","type":"int8"},{"name":"api_token","type":"text"}],' : ''}"rows":[[9007199254740993,"${first ? 'first-page-secret' : 'next-page-secret'}"]],"cursor":${cursor}}`,
    );
  const done = { code: 0 };
  recording.add('kv_set', [`token of ${TOKEN}`, bytes(CONFIGURED), 0], done);
  recording.add('kv_set', ['bytes', binary(`${CONFIGURED} ${PASSWORD} ${MAIL}`), 0], done);
  recording.add('http_request', [`{"url":"https://x.example/?q=${encodeURIComponent(CONFIGURED)}&api_key=${TOKEN}"}`], {
    code: 0,
    data: `{"status":200,"headers":{"x":"a+very+%22secret%22+key"}}`,
    body: binary(CONFIGURED),
  });
  recording.add('kv_get_many', ['["a"]'], {
    code: 0,
    data: JSON.stringify({ a: Buffer.from(`at ${PASSWORD}`).toString('base64') }),
  });
  recording.add('kv_set', ['who', bytes(`${SURNAME}, ${PHONE}`), 0], done);
  recording.add('http_get', [`https://x.example/?phone=${encodeURIComponent(PHONE)}`], done);
  recording.add('sql_query', [1, 'SELECT id, api_token FROM t', '[]', 1], { code: 0, data: rows(2, true) });
  recording.add('sql_fetch', [2, 1], { code: 0, data: rows(null, false) });
  const packed = recording.pack(OUTCOME, 200);
  if (packed === null) throw new Error('nothing was recorded');
  const found = recordedExecution.parse(JSON.parse(packed.toString()));
  // Bytes that are no text, and values of several keys, are in base64.
  const opened = packed.toString().replace(/[\w+/]{8,}={0,2}/g, part => `${part} ${Buffer.from(part, 'base64')}`);
  for (const secret of [...SECRETS, 'first-page-secret', 'next-page-secret'])
    for (const written of [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)])
      t.notOk(opened.includes(written), `${written} is hidden`);
  const event: unknown = JSON.parse(found.event);
  t.match(event, { raw_query: 'n=1&token=(hidden)', query_all: { token: ['(hidden)'], n: ['1'] } });
  t.match(event, { headers: { authorization: '(hidden)', 'x-request-id': 'r-1' } }, 'what follows a secret is whole');
  t.match(found.calls[6]?.data, '"rows":[[9007199254740993,"(hidden)"]]', 'digits stay as they were');
  t.equal(found.calls[2]?.data, '{"status":200,"headers":{"x":"(hidden)"}}');
  t.end();
});

/** A recording of an execution with this event and body. */
function recordingOf(event: object, body = '', config: Record<string, string> = {}): Recording {
  return new Recording({
    plugin: { id: 'p', version: '1', sha256: 'f'.repeat(64), config },
    trigger: 'run',
    secretFields: Object.keys(config),
    event: JSON.stringify({ kind: 'http', ...event }),
    body: bytes(body),
  });
}

t.test('what a plugin takes out of a hidden value is hidden, too', t => {
  const basic = `Basic ${Buffer.from('ada:correct-horse').toString('base64')}`;
  const cases: Array<[hidden: string, recording: Recording, uses: string]> = [
    ['tok-1234567890', recordingOf({ headers: { authorization: 'Bearer tok-1234567890' } }), 'session:tok-1234567890'],
    ['5f2a9c77e1b04d33', recordingOf({ headers: { cookie: 'lang=ru; x=5f2a9c77e1b04d33' } }), 's:5f2a9c77e1b04d33'],
    ['correct-horse', recordingOf({ headers: { authorization: basic } }), '["ada","correct-horse"]'],
    ['Иван', recordingOf({}, '{"first_name":"Иван"}'), '["Иван"]'],
    ['hunter2', recordingOf({}, '{"password":"hunter2"}'), 'of hunter2.'],
    ['79161234567', recordingOf({}, '{"phone":79161234567}'), '["79161234567"]'],
    [
      'Иван',
      recordingOf({}, '{"first_name":"Иван"}'),
      '?q=%D0%98%D0%B2%D0%B0%D0%BD&p={"n":"\\u0418\\u0432\\u0430\\u043d"',
    ],
    ['Иван Ли', recordingOf({}, '{"full_name":"Иван Ли"}'), 'q=%D0%98%D0%B2%D0%B0%D0%BD+%D0%9B%D0%B8'],
    ["O'Neil & Co", recordingOf({}, '{"last_name":"O\'Neil & Co"}'), '<b>O&#39;Neil &amp; Co</b>'],
    [
      'Пётр',
      recordingOf({}, '{"first_name":"Пётр, сын"}'),
      'said {"x":"\\u041f\\u0451\\u0442\\u0440, \\u0441\\u044b\\u043d"',
    ],
  ];
  for (const [hidden, recording, uses] of cases) {
    recording.add('kv_set', [uses, bytes(uses), 0], { code: 0 });
    const text = String(recording.pack(OUTCOME, 200));
    const opened = text
      .replace(/(?:%[\dA-F]{2})+/g, part => decodeURIComponent(part))
      .replace(/\\+u([\da-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
    t.notOk(opened.includes(hidden), hidden);
  }
  t.end();
});

t.test('a secret of the configuration is hidden however a language writes it', t => {
  const address = 'https://chat.example:443/hooks/xyz-SECRET';
  const cases: Array<[secret: string, written: string]> = [
    ['a+b/c==12', 'https://x.example/v1/a+b%2Fc==12'],
    ['pa*ss~wo!rd', 'n=1&q=pa%2Ass~wo%21rd&m=2'],
    ['пароль-секрет', `?q=${encodeURIComponent('пароль-секрет').toLowerCase()}`],
    ['a very secret key', Buffer.from('u:a very secret key').toString('base64')],
    ['a very secret key', 'a+very+secret+key'],
    [address, new URL(address).href],
    [` ${address}\n`, address],
    ['key-abcdef\n', 'X-Auth: key-abcdef'],
    ['two\nlines', '{"a":"two\\nlines"'],
  ];
  for (const [secret, written] of cases) {
    const recording = recordingOf({}, '', { key: secret });
    recording.add('http_request', [`to ${written}`], { code: 0 });
    const { calls } = recordedExecution.parse(JSON.parse(String(recording.pack(OUTCOME, 200))));
    t.match(String(calls[0]?.arguments[0]), /^to .*\(hidden\)/, written);
    t.notMatch(String(calls[0]?.arguments[0]), written, written);
  }
  t.end();
});

t.test('a short value is hidden as a word, a column by its name, and a field of a form with files', t => {
  const form =
    '--b\r\nContent-Disposition: form-data; name="password"\r\n\r\ncorrect-horse\r\n' +
    '--b\r\nContent-Disposition: form-data; name="note"\r\n\r\nkept\r\n--b--\r\n';
  const recording = recordingOf({ query: { pin: 'axe' } }, form);
  recording.add('kv_get', ['{"axe":"axe","maxed":"axes"}'], { code: 0 });
  recording.add('sql_query', [1, 'SELECT', '[]', 1], {
    code: 0,
    data: '{"columns":[{"name":"n","type":"int8"},{"name":"phone","type":"int8"}],"rows":[[5,79161234567]],"cursor":null}',
  });
  const { body, calls } = recordedExecution.parse(JSON.parse(String(recording.pack(OUTCOME, 200))));
  t.equal(body, form.replace('correct-horse', '(hidden)'));
  t.equal(calls[0]?.arguments[0], '{"axe":"(hidden)","maxed":"axes"}', 'the name of a member stays');
  t.match(calls[1]?.data, '"rows":[[5,0]]');
  t.end();
});

t.test('nothing is recorded of an execution that hides more values than can be searched', t => {
  const people = (count: number): string =>
    JSON.stringify(Array.from({ length: count }, (_, k) => ({ last_name: `name of ${k}` })));
  t.not(recordingOf({}, people(1999)).pack(OUTCOME, 200), null);
  t.equal(recordingOf({}, people(2000)).pack(OUTCOME, 200), null);
  t.end();
});

t.test('hidden values of any length and kind are searched in a time that grows with the text alone', t => {
  const cases: Array<[value: (k: number) => string, count: number, text: string]> = [
    [k => 'a'.repeat(1 + (k % 200)) + k, 900, 'a'],
    [k => `${'a'.repeat(16_000)}b${'a'.repeat(k)}`, 3, 'a'],
    [k => ' '.repeat(8 + (k % 100)) + k, 900, ' +'],
    [k => '\\'.repeat(8 + (k % 50)) + k, 900, '\\'],
    [k => `v ${k} " /ü`, 900, '1,'],
    [k => `data:image/png;base64,${'QUJD/+'.repeat(10_000)}${k}`, 2, 'QUJD'],
    // Almost a mail address.
    [k => `ab@${'.'.repeat(100_000 + k)}@`, 2, '.'],
    [k => `a@b.${'c.'.repeat(50_000)}${k}@`, 2, '@'],
  ];
  for (const [value, count, text] of cases) {
    const people = Array.from({ length: count }, (_, k) => ({ token: value(k) }));
    const body = JSON.stringify([people, text.repeat(2 ** 18 / text.length)]);
    // One pattern of alternatives throws for the longest of them, and takes seconds for others.
    const packed = String(recordingOf({}, body).pack(OUTCOME, 200));
    t.notOk(packed.includes(value(1).slice(0, 100)), value(1).slice(0, 30));
  }
  t.end();
});

t.test('what hides other things than values by their names leaves the rest of the recording readable', t => {
  const event = {
    method: 'GET',
    path: '/plugins/foo/login',
    headers: { host: 'lk.example.org' },
    auth: { user_id: 42 },
  };
  const body = {
    ...{ pin: 42, patronymic: 'n/a', phone: '--', token_type: 'bearer', has_password: 'yes', otp: 'messenger' },
    ...{ secretary: 'Ivanova', mapping_key: 7 },
  };
  const recording = recordingOf(event, JSON.stringify(body));
  recording.add('kv_set', ['application/atom+xml -- yes, bearer of 42', 7, 0], { code: 0 });
  const headers = 'Set-Cookie\0sid=x; Domain=lk.example.org; Path=/plugins/foo; Max-Age=86400000\0';
  const packed = recordedExecution.parse(JSON.parse(String(recording.pack({ ...OUTCOME, headers }, 200))));
  t.same(JSON.parse(packed.event), { kind: 'http', ...event });
  t.equal(packed.calls[0]?.arguments[0], 'application/atom+xml -- yes, bearer of 42');
  t.match(JSON.parse(String(packed.body)), { pin: 0, secretary: 'Ivanova', mapping_key: 7 });
  t.end();
});

t.test('what is sent in another form than JSON is hidden as it is meant', t => {
  const cases: Array<[body: string, meant: string, masked: string]> = [
    ['last_name=%D0%9A%D1%83%D0%B7%D0%BD%D0%B5%D1%86%D0%BE%D0%B2%D0%B0', 'Кузнецова', 'last_name=(hidden)'],
    ['full_name=Ivan+Petrovich&n=1', 'Ivan Petrovich', 'full_name=(hidden)&n=1'],
    ['to=ada%40example.org', 'ada@example.org', 'to=(hidden)'],
    ['{"phone":79161234567}\n{"phone":79160000000}\n', '79161234567', '{"phone":0}\n{"phone":0}\n'],
    ['\ufeff{"phone":79161234567}', '79161234567', '\ufeff{"phone":0}'],
    ['{"passport":{"series":4510,"number":123456}}', '123456', '{"passport":{"series":0,"number":0}}'],
    ['see postgres://me:s3cretpass@db/x', 's3cretpass', 'see postgres://(hidden)@db/x'],
    ['said "last_name":"\\u041a\\u0443\\u0437"', 'Куз', 'said "last_name":"(hidden)"'],
  ];
  for (const [body, meant, masked] of cases) {
    const recording = recordingOf({ query: { to: body.includes('%40') ? 'ada@example.org' : '' } }, body);
    recording.add('kv_set', [`of ${meant}.`, Buffer.from(`u:${meant}`), 0], { code: 0 });
    const packed = recordedExecution.parse(JSON.parse(String(recording.pack(OUTCOME, 200))));
    t.equal(packed.body, masked);
    t.notMatch(JSON.stringify(packed.calls), meant, meant);
  }
  t.end();
});

t.test('values that are hidden do not make one of several keys', t => {
  const recording = recordingOf({});
  const of = (text: string): string => Buffer.from(text).toString('base64');
  recording.add('kv_get_many', ['[]'], {
    code: 0,
    data: JSON.stringify({ 'u:ada@a.example': of('1'), 'u:bob@a.example': of('2') }),
  });
  const { calls } = recordedExecution.parse(JSON.parse(String(recording.pack(OUTCOME, 200))));
  t.same(Object.values(JSON.parse(String(calls[0]?.data))), [of('1'), of('2')]);
  t.end();
});

t.test('a secret of digits is hidden where it is a number, too, and JSON stays JSON', t => {
  const recording = new Recording({
    plugin: { id: 'p', version: '1', sha256: 'f'.repeat(64), config: { pin: '4711' } },
    trigger: 'run',
    secretFields: ['pin'],
    event: '{"kind":"http","pin":4711,"year":2026,"text":"code 4711"}',
    body: bytes('[14711.5,true,"4711"]'),
  });
  const packed = recording.pack({ ...OUTCOME, body: bytes('true') }, 200);
  const found = recordedExecution.parse(JSON.parse(String(packed)));
  t.equal(found.event, '{"kind":"http","pin":0,"year":2026,"text":"code (hidden)"}');
  t.equal(found.body, '[0,true,"(hidden)"]');
  t.equal(found.outcome.body, 'true');
  t.end();
});

t.test('of a plugin only so many recordings of an hour are kept', t => {
  const allowance = new RecordingAllowance();
  const at = (pluginId: string, hour: number): boolean => allowance.take(pluginId, new Date(hour * 3_600_000), 2);
  for (let k = 0; k < LIMITS.recordingsPerPluginHour; k++) at('p', 1);
  t.same([at('p', 1), at('other', 1), at('p', 2)], [false, true, true]);
  t.end();
});
