import t from 'tap';
import { OBJECT_TYPES, AUDIT_ACTIONS as SHOWN_ACTIONS } from '../../admin/src/screens/audit-actions.ts';
import { en } from '../../admin/src/texts/en.ts';
import { LIMITS_EN } from '../../admin/src/texts/limits.en.ts';
import { LIMITS_RU } from '../../admin/src/texts/limits.ru.ts';
import { ru } from '../../admin/src/texts/ru.ts';
import { SETTINGS_RU } from '../../admin/src/texts/settings.ru.ts';
import { AUDIT_ACTIONS, AUDIT_OBJECTS } from '../../src/audit/audit-log.ts';
import { FIELD_ERROR_CODES, STATUS_OF } from '../../src/base/errors.ts';
import { LIMITS } from '../../src/base/limits.ts';
import { ROWS } from '../../src/config/keys.ts';
import { FINDING_RULES } from '../../src/plugins/finding.ts';
import { SUSPENSION_REASONS } from '../../src/records/suspension.ts';

/** The texts of the pages: both languages say the same things. */

const PLURALS: Readonly<Record<string, readonly string[]>> = {
  en: ['_one', '_other'],
  ru: ['_one', '_few', '_many', '_other'],
};
const PLURAL = /_(one|few|many|other)$/;

type Texts = { [key: string]: string | Texts };

/** Each text by its whole key. */
const flat = (texts: Texts, path = ''): Array<[string, string]> =>
  Object.entries(texts).flatMap(
    ([key, value]): Array<[string, string]> =>
      typeof value === 'string' ? [[`${path}${key}`, value]] : flat(value, `${path}${key}.`),
  );

const keysOf = (texts: Texts): string[] => [...new Set(flat(texts).map(([key]) => key.replace(PLURAL, '')))].sort();
const insertedIn = (text: string): string[] => [...text.matchAll(/\{\{(\w+)\}\}/g)].map(m => m[1] ?? '').sort();

t.test('English and Russian have the same keys, and each all the plural forms of its language', async t => {
  t.same(keysOf(ru), keysOf(en));
  t.ok(keysOf(en).length > 300);
  for (const [language, texts] of [
    ['en', en],
    ['ru', ru],
  ] as const) {
    const keys = flat(texts).map(([key]) => key);
    for (const stem of new Set(keys.filter(k => PLURAL.test(k)).map(k => k.replace(PLURAL, ''))))
      t.same(
        keys.filter(k => k.startsWith(`${stem}_`) && PLURAL.test(k)).sort(),
        (PLURALS[language] ?? []).map(form => stem + form).sort(),
        `${language}: ${stem}`,
      );
  }
});

t.test('every refusal, mistake, finding and suspension of the service has words', async t => {
  t.same(Object.keys(en.refusal).sort(), [...Object.keys(STATUS_OF), 'unreachable'].sort());
  t.same([...SHOWN_ACTIONS].sort(), [...AUDIT_ACTIONS].sort());
  t.same([...OBJECT_TYPES].sort(), [...AUDIT_OBJECTS].sort());
  t.same(Object.keys(en.mistake).sort(), [...FIELD_ERROR_CODES].sort());
  t.same(Object.keys(en.finding).sort(), [...FINDING_RULES].sort());
  t.same(
    keysOf(en.suspension)
      .filter(key => key !== 'outOfMemory')
      .sort(),
    [...SUSPENSION_REASONS].sort(),
  );
});

t.test('every key of the configuration and every limit is described in Russian', async t => {
  t.same(Object.keys(SETTINGS_RU).sort(), Object.keys(ROWS).sort());
  t.same(Object.keys(LIMITS_RU).sort(), Object.keys(LIMITS).sort());
  t.same(Object.keys(LIMITS_EN).sort(), Object.keys(LIMITS).sort());
  for (const [name, text] of Object.entries({ ...SETTINGS_RU, ...LIMITS_RU })) t.match(text, /[а-яё]{3}/i, name);
});

t.test('a text and its translation insert the same values, and none is empty', async t => {
  const english = new Map(flat(en));
  for (const [key, text] of flat(ru)) {
    t.not(text.trim(), '', key);
    const original = english.get(key) ?? english.get(key.replace(PLURAL, '_other')) ?? '';
    // "one file" need not show its number.
    const extra = insertedIn(original).filter(name => name !== 'count' || !key.endsWith('_one'));
    const missing = extra.filter(name => !insertedIn(text).includes(name));
    t.same(missing, [], `${key} inserts what the English text does`);
    t.same(
      insertedIn(text).filter(name => !insertedIn(original).includes(name)),
      [],
      `${key} inserts nothing else`,
    );
  }
});
