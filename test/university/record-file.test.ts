import t from 'tap';
import { formatCsv, parseCsv } from '../../admin/src/university/csv.ts';
import { decodeFile, FileProblem, failedRecords, readRecords } from '../../admin/src/university/record-file.ts';

const field = (name: string, kind: 'text' | 'number' | 'boolean' | 'date' | 'object' | 'list') => ({
  name,
  kind,
  required: false,
  values: null,
  references: null,
});
const FIELDS = [
  field('external_id', 'text'),
  field('name', 'text'),
  field('name_i18n', 'object'),
  field('channels', 'list'),
  field('rate', 'number'),
  field('is_active', 'boolean'),
  field('start_date', 'date'),
];

const faultOf = (text: string, columns = {}): object => {
  try {
    readRecords(text, FIELDS, columns);
  } catch (error) {
    if (error instanceof FileProblem) return error.fault;
    throw error;
  }
  return {};
};

t.test('numbers keep their digits', t => {
  const json = '[{"external_id":"a","inn":1546130668394913822,"credits":1.10,"rate":0.5}]';
  t.equal(JSON.stringify(readRecords(json, FIELDS).records), json);
  const csv = 'external_id,rate,channels\na,"1,10","[12345678901234567890]"\nb,007,\nc,0.5,\n';
  t.equal(
    JSON.stringify(readRecords(csv, FIELDS).records),
    '[{"external_id":"a","rate":1.10,"channels":[12345678901234567890]},{"external_id":"b","rate":7},{"external_id":"c","rate":0.5}]',
  );
  t.equal(JSON.stringify(readRecords('[1546130668394913822]', FIELDS).records), '[1546130668394913822]', 'no record');
  t.end();
});

t.test('cells in quotes hold delimiters, quotes and line breaks; rows know their lines', async t => {
  const { delimiter, isCutOff, rows } = parseCsv('\uFEFFa;b\r\n"x;1";"say ""hi""\nthere"\r\n\r\n;\r\nlast;"');
  t.equal(delimiter, ';');
  t.ok(isCutOff);
  t.same(rows.slice(0, 2), [
    { line: 1, cells: ['a', 'b'] },
    { line: 2, cells: ['x;1', 'say "hi"\nthere'] },
  ]);
  t.match(rows[2], { line: 6 }, 'lines without any text are left out');
  const cells = [['a,b', 'c"d', ' e', 'f\ng', 'h']];
  t.same(parseCsv(formatCsv(cells, ',')).rows[0]?.cells, cells[0], 'what was written is read again');
  t.equal(parseCsv('a\tb,c\td\n').delimiter, '\t');
});

t.test('columns that are called otherwise are read as their fields, or left out', t => {
  const columns = { Название: 'name', Тип: 'name_i18n.ru', Комната: null };
  const file = readRecords('external_id;Название;Тип;Комната;Этаж\ne1;Зал;зал;101;2\n', FIELDS, columns);
  t.same(file.records, [{ external_id: 'e1', name: 'Зал', name_i18n: { ru: 'зал' }, Этаж: '2' }]);
  t.same(file.columns, ['external_id', 'name', 'name_i18n', 'Этаж']);
  t.match(file, { headings: ['external_id', 'Название', 'Тип', 'Комната', 'Этаж'] });
  t.match(
    failedRecords(file, [{ index: 0, external_id: 'e1', field: 'name', code: 'invalid', message: 'wrong' }]),
    'Название',
  );
  t.same(faultOf('name;Название\na;b\n', columns), { code: 'field_twice', field: 'name' });
  t.same(readRecords('Комната;external_id\n1;e1\n', FIELDS, columns).records, [{ external_id: 'e1' }]);
  t.end();
});

t.test('cells become what their fields hold, and stay text where they cannot', async t => {
  const text = [
    'external_id,name,name_i18n.ru,name_i18n.en,channels,rate,is_active,start_date,room,_error',
    'e1,Анна,Анна,Anna,"[{""channel"":""VK"",""external_id"":""7""}]","0,5",yes,01.09.2026,101,wrong before',
    '0042,Пётр,,,x,half,perhaps,2026-09-02,,',
  ].join('\n');
  const file = readRecords(text, FIELDS);
  t.same(file.records, [
    {
      external_id: 'e1',
      name: 'Анна',
      name_i18n: { ru: 'Анна', en: 'Anna' },
      channels: [{ channel: 'VK', external_id: '7' }],
      rate: 0.5,
      is_active: true,
      start_date: '2026-09-01',
      room: '101',
    },
    { external_id: '0042', name: 'Пётр', channels: 'x', rate: 'half', is_active: 'perhaps', start_date: '2026-09-02' },
  ]);
  t.same(file.columns.includes('_error'), false);
});

t.test('JSON comes as a list or as an object with items, without the column of errors', async t => {
  t.same(readRecords('[{"external_id":"a","_error":"x"},7]', FIELDS).records, [{ external_id: 'a' }, 7]);
  t.same(readRecords('{"items":[{"external_id":"a"}],"next":null}', FIELDS).records, [{ external_id: 'a' }]);
});

t.test('a text that holds no records says why', async t => {
  t.same(faultOf(' \n'), { code: 'empty' });
  t.same(faultOf('external_id,name\n'), { code: 'no_records' });
  t.same(faultOf('{"a":1}'), { code: 'no_list' });
  t.match(faultOf('[{]'), { code: 'json' });
  t.same(faultOf('a,b,a\n1,2,3'), { code: 'column_twice', column: 'a' });
  t.same(faultOf('a,b\n1,2\n1,2,3'), { code: 'too_many_cells', line: 3, cells: 3, columns: 2 });
  t.same(faultOf('a,b\n"1,2'), { code: 'cut_off', line: 2 });
});

t.test('failed records come back as the file had them, each with all that is wrong', async t => {
  const error = (index: number, message: string) =>
    ({ index, external_id: null, field: null, code: 'invalid', message }) as const;
  const errors = [error(2, 'third'), error(0, 'first'), error(0, 'also')];
  const csv = readRecords('external_id;name;_error\na;"A; B";old\nb;B;\nc', FIELDS);
  t.equal(failedRecords(csv, errors), 'external_id;name;_error\r\na;"A; B";"first; also"\r\nc;;third\r\n');
  const json = readRecords('[{"external_id":"a"},{"external_id":"b"},7]', FIELDS);
  t.same(JSON.parse(failedRecords(json, errors)), [
    { external_id: 'a', _error: 'first; also' },
    { record: 7, _error: 'third' },
  ]);
});

t.test('a file that is not UTF-8 is read as spreadsheets of Windows write it', async t => {
  t.same(decodeFile(new TextEncoder().encode('Имя').buffer), { text: 'Имя', encoding: 'utf-8' });
  const utf16 = new Uint8Array([0xff, 0xfe, ...Buffer.from('Имя', 'utf16le')]);
  t.same(decodeFile(utf16.buffer), { text: 'Имя', encoding: 'utf-16le' });
  t.same(decodeFile(new Uint8Array([0xfe, 0xff, 0x04, 0x18]).buffer), { text: 'И', encoding: 'utf-16be' });
  for (const bytes of [
    [0x61, 0x00, 0x62],
    [0x80, 0x03, 0xc8],
  ])
    t.throws(() => decodeFile(new Uint8Array(bytes).buffer), { message: 'not_text' });
  t.same(decodeFile(new Uint8Array([0xc8, 0xec, 0xff]).buffer), { text: 'Имя', encoding: 'windows-1251' });
});
