import t from 'tap';
import { maskHeaders, maskText } from '../../src/base/mask-text.ts';

/** What is handed out of other people's words (docs/plugins.md "Recordings"). */

t.test('credentials, passwords of addresses and mail addresses are hidden', t => {
  const cases: Array<[text: string, masked: string]> = [
    ['write to ada.l+x@mail.example.org.', 'write to hidden@example.invalid.'],
    ['postgres://me:secret@db:5432/x', 'postgres://(hidden)@db:5432/x'],
    ['{"password": "a\\"b", "n":1}', '{"password": "(hidden)", "n":1}'],
    ['said {"password": "a\\"b", "n":1}', 'said {"password":"(hidden)", "n":1}'],
    [
      '{"query_all":{"token":["a","b"],"page":["1"]},"n":9007199254740993}',
      '{"query_all":{"token":["(hidden)","(hidden)"],"page":["1"]},"n":9007199254740993}',
    ],
    ['{"raw_query":"n=1&token=abc","after":"kept"}', '{"raw_query":"n=1&token=(hidden)","after":"kept"}'],
    ['{"url":"https://x.example/?api_key=abc"}', '{"url":"https://x.example/?api_key=(hidden)"}'],
    ['{"text":"{\\"token\\":\\"abc\\"}"}', '{"text":"{\\"token\\":\\"(hidden)\\"}"}'],
    ['{"password":1234,"service_key_id":5,"has_token":true}', '{"password":0,"service_key_id":5,"has_token":true}'],
    ['{"ada@example.org":[1]}', '{"hidden@example.invalid":[1]}'],
    ['sent Authorization: Bearer abc.def1 to it', 'sent Authorization: Bearer (hidden) to it'],
    ['basic authentication is off', 'basic authentication is off'],
    ['failed with token=abc', 'failed with token=(hidden)'],
    [
      '{"headers":{"authorization":"Basic x","X-Api-Key":"k"}}',
      '{"headers":{"authorization":"(hidden)","X-Api-Key":"(hidden)"}}',
    ],
    ['name=ada&api_key=abc&n=1', 'name=ada&api_key=(hidden)&n=1'],
    [
      '{"name":"hello","last_name":"Ада","birthDate":"2001-01-01","phone":"1","phones":2,"email":"a@b.example"}',
      '{"name":"hello","last_name":"(hidden)","birthDate":"(hidden)","phone":"(hidden)","phones":2,"email":"hidden@example.invalid"}',
    ],
    ['name=ada&last_name=lovelace&n=1', 'name=ada&last_name=(hidden)&n=1'],
    ['{"key":"kept","monkey":"kept","opinion":"kept"}', '{"key":"kept","monkey":"kept","opinion":"kept"}'],
    ['{"passwd":"a","accessKey":"b","fio":"c"}', '{"passwd":"(hidden)","accessKey":"(hidden)","fio":"(hidden)"}'],
    ['write to почта@университет.рф', 'write to hidden@example.invalid'],
  ];
  for (const [text, masked] of cases) t.equal(maskText(text), masked);
  t.equal(
    maskHeaders('Set-Cookie\0a=b\0Content-Type\0text/plain\0'),
    'Set-Cookie\0(hidden)\0Content-Type\0text/plain\0',
  );
  t.end();
});

t.test('JSON in strings of JSON is read a few levels deep, and hidden whole below', t => {
  /** @param written writes a string of JSON */
  const nested = (depth: number, written: (text: string) => string): string => {
    let text = '["write to ada@example.org"]';
    for (let level = 0; level < depth; level++) text = `["${written(text)}"]`;
    return text;
  };
  const short = (text: string): string => text.replaceAll('\\', '\\u005c').replaceAll('"', '\\u0022');
  const plain = (text: string): string => JSON.stringify(text).slice(1, -1);
  t.equal(maskText(nested(2, plain)), nested(2, plain).replace('ada@example.org', 'hidden@example.invalid'));
  for (const depth of [3, 4, 26]) {
    const masked = maskText(nested(depth, short));
    t.notMatch(masked, 'ada@', `${depth} levels`);
    // Each level would double the escapes of those within it: 26 make half a gigabyte of four kilobytes.
    t.ok(masked.length < 8 * nested(depth, short).length, `${depth} levels: ${masked.length} characters`);
  }
  t.equal(maskText(nested(26, short)).includes('(hidden)'), true);
  t.end();
});

t.test('long texts that almost match take no time that grows with their square', t => {
  const parts = [
    '["token",',
    '{"token":',
    'bearer ',
    'a',
    'a-',
    'a.',
    '"token',
    'tokentoken',
    '"password":"',
    '&token',
    'x@',
    'key-',
    'http://',
    '; name="pwd"\n',
    '; name="pwd"\na\n',
  ];
  // With patterns that try each beginning again, one of these takes minutes.
  for (const part of parts) t.type(maskText(part.repeat(2 ** 20 / part.length)), 'string', part);
  t.end();
});
