import t from 'tap';
import { maskHeaders, maskText } from '../../src/base/mask-text.ts';

/** What is handed out of other people's words (docs/plugins.md "Recordings"). */

t.test('credentials, passwords of addresses and mail addresses are hidden', t => {
  const cases: Array<[text: string, masked: string]> = [
    ['write to ada.l+x@mail.example.org.', 'write to (mail address).'],
    ['postgres://me:secret@db:5432/x', 'postgres://(hidden)@db:5432/x'],
    ['{"password": "a\\"b", "n":1}', '{"password":"(hidden)", "n":1}'],
    [
      '{"headers":{"authorization":"Basic x","X-Api-Key":"k"}}',
      '{"headers":{"authorization":"(hidden)","X-Api-Key":"(hidden)"}}',
    ],
    ['name=ada&api_key=abc&n=1', 'name=ada&api_key=(hidden)&n=1'],
    ['{"key":"kept","monkey":"kept"}', '{"key":"kept","monkey":"kept"}'],
  ];
  for (const [text, masked] of cases) t.equal(maskText(text), masked);
  t.equal(
    maskHeaders('Set-Cookie\0a=b\0Content-Type\0text/plain\0'),
    'Set-Cookie\0(hidden)\0Content-Type\0text/plain\0',
  );
  t.end();
});

t.test('long texts that almost match take no time that grows with their square', t => {
  const parts = ['a', 'a-', 'a.', '"token', 'tokentoken', '"password":"', '&token', 'x@', 'key-', 'http://'];
  // With patterns that try each beginning again, one of these takes minutes.
  for (const part of parts) t.type(maskText(part.repeat(2 ** 20 / part.length)), 'string', part);
  t.end();
});
