import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from '@codemirror/language';
import { tags } from '@lezer/highlight';
import i18next from 'i18next';
import { readable } from '../app/theme.ts';

/** What a completion knows of this service. */
export type Vocabulary = {
  roles: readonly string[];
  objects: ReadonlyArray<{ name: string; permissions: readonly string[]; relations: readonly string[] }>;
};

/** Attributes of `user` with the values they may have (docs/authorization.md "What a policy knows"). */
const ATTRIBUTES: Readonly<Record<string, readonly string[]>> = {
  id: [],
  external_id: [],
  groups: [],
  roles: [],
  primary_channel: ['TELEGRAM', 'VK'],
  locale: ['ru', 'en'],
  nationality_type: ['domestic', 'foreign'],
  funding_type: ['budget', 'contract'],
  education_form: ['full_time', 'part_time', 'remote'],
};
const FUNCTIONS: ReadonlyArray<
  readonly [name: string, template: string, about: 'check' | 'isMember' | 'hasRole' | 'hasAnyRole' | 'reMatch']
> = [
  ['check', 'check("", "", "")', 'check'],
  ['is_member', 'is_member("", "")', 'isMember'],
  ['has_role', 'has_role("")', 'hasRole'],
  ['has_any_role', 'has_any_role("", "")', 'hasAnyRole'],
  ['re_match', 're_match("", "")', 'reMatch'],
];
const NAMES = new Set([
  ...FUNCTIONS.map(([name]) => name),
  'size',
  'exists',
  'all',
  'startsWith',
  'endsWith',
  'contains',
]);

export const policyLanguage = StreamLanguage.define<object>({
  name: 'policy',
  startState: () => ({}),
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match(/\/\/.*/)) return 'comment';
    if (stream.match(/"(?:[^"\\]|\\.)*"?/) || stream.match(/'(?:[^'\\]|\\.)*'?/)) return 'string';
    if (stream.match(/\d+(?:\.\d+)?/)) return 'number';
    if (stream.match(/&&|\|\||[!=<>]=?|[?:+\-*/%]/)) return 'operator';
    const word = stream.match(/[A-Za-z_]\w*/);
    if (word === null) {
      stream.next();
      return null;
    }
    const text = typeof word === 'object' ? word[0] : '';
    if (text === 'true' || text === 'false' || text === 'in' || text === 'null') return 'keyword';
    if (NAMES.has(text)) return 'variableName.function';
    return text === 'user' || text === 'principal' ? 'variableName.special' : 'propertyName';
  },
});

/** Colours that can be read on white and on black. */
export const policyColours = syntaxHighlighting(
  HighlightStyle.define([
    { tag: tags.string, color: readable('teal') },
    { tag: tags.number, color: readable('orange') },
    { tag: tags.keyword, color: readable('grape') },
    { tag: tags.operator, color: readable('grape') },
    { tag: tags.function(tags.variableName), color: readable('indigo'), fontWeight: '600' },
    { tag: tags.special(tags.variableName), color: readable('indigo') },
    { tag: tags.comment, color: 'var(--mantine-color-dimmed)' },
  ]),
);

const options = (labels: readonly string[], type: string, detail?: string): Completion[] =>
  labels.map(label => ({ label, type, ...(detail === undefined ? {} : { detail }) }));

/** What the quoted text in front of the cursor may be: which argument of which function, or a value of which attribute. */
function inQuotes(before: string, { objects, roles }: Vocabulary): Completion[] {
  const call = /\b(check|is_member|has_role|has_any_role)\(([^()]*)$/.exec(before);
  if (call !== null) {
    const [, name, given = ''] = call;
    const place = given.split(',').length - 1;
    if (name === 'has_role' || name === 'has_any_role') return options(roles, 'constant', i18next.t('policy.role'));
    const types = options(
      objects.map(o => o.name),
      'type',
      i18next.t('policy.objectType'),
    );
    if (name === 'is_member') return place === 0 ? types : [];
    if (place === 1) return types;
    if (place === 0)
      return options(
        [...new Set(objects.flatMap(o => [...o.permissions, ...o.relations]))].sort(),
        'property',
        i18next.t('policy.permission'),
      );
    return [];
  }
  const compared = /user\.(\w+)\s*(?:[=!]=|in)\s*\[?[^&|]*["']\w*$/.exec(before);
  return compared === null ? [] : options(ATTRIBUTES[compared[1] ?? ''] ?? [], 'enum');
}

/** Completions of a policy: attributes with their values, functions, roles, object types and permissions. */
export const completionsOf =
  (vocabulary: () => Vocabulary) =>
  (context: CompletionContext): CompletionResult | null => {
    const line = context.state.doc.lineAt(context.pos);
    const before = line.text.slice(0, context.pos - line.from);
    const quoted = /["']([^"']*)$/.exec(before);
    const isQuoted = quoted !== null && (before.match(/["']/g)?.length ?? 0) % 2 === 1;
    if (isQuoted) return { from: context.pos - (quoted[1]?.length ?? 0), options: inQuotes(before, vocabulary()) };
    const member = /\buser\.(\w*)$/.exec(before);
    if (member !== null)
      return {
        from: context.pos - (member[1]?.length ?? 0),
        options: Object.entries(ATTRIBUTES).map(([label, values]) => ({
          label,
          type: 'property',
          detail: values.join(' | '),
        })),
      };
    const word = /\w*$/.exec(before)?.[0] ?? '';
    if (word === '' && !context.explicit) return null;
    return {
      from: context.pos - word.length,
      options: [
        { label: 'user', type: 'variable', detail: i18next.t('policy.user') },
        { label: 'principal', type: 'variable', detail: i18next.t('policy.principal') },
        ...FUNCTIONS.map(
          ([label, template, about]): Completion => ({
            label,
            type: 'function',
            detail: i18next.t(`policy.function.${about}`),
            apply(view, _completion, from, to) {
              // The cursor goes between the first quotes.
              const anchor = from + template.indexOf('"') + 1;
              view.dispatch({ changes: { from, to, insert: template }, selection: { anchor } });
            },
          }),
        ),
      ],
    };
  };
