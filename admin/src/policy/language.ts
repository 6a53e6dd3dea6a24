import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from '@codemirror/language';
import { tags } from '@lezer/highlight';
import i18next from 'i18next';
import { readable } from '../app/theme.ts';
import { type Asked, askedAt } from './asked-at.ts';

/** What a completion knows of this service. */
export type Vocabulary = {
  roles: readonly string[];
  objects: ReadonlyArray<{ name: string; permissions: readonly string[]; relations: readonly string[] }>;
  /** Objects of a type, or people, whose name has this part or whose id begins so; none for who may not see them. */
  find(type: string, search: string): Promise<ReadonlyArray<{ id: string; name: string | null }>>;
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

/** What fits what is asked. */
async function optionsFor(asked: Asked, vocabulary: Vocabulary): Promise<Completion[]> {
  const { find, objects, roles } = vocabulary;
  switch (asked.kind) {
    case 'role':
      return options(roles, 'constant', i18next.t('policy.role'));
    case 'permission':
      return options(
        [...new Set(objects.flatMap(o => [...o.permissions, ...o.relations]))].sort(),
        'property',
        i18next.t('policy.permission'),
      );
    case 'type': {
      const fitting = objects.filter(o => [...o.permissions, ...o.relations].includes(asked.permission));
      const names = (fitting.length > 0 ? fitting : objects).map(o => o.name);
      return options(names, 'type', i18next.t('policy.objectType'));
    }
    case 'id':
      return (await find(asked.type, asked.search)).map(({ id, name }) => ({
        ...{ label: id, apply: id.replace(/["'\\]/g, '\\$&'), type: 'text' },
        ...(name === null ? {} : { detail: name }),
      }));
    case 'value':
      return options(ATTRIBUTES[asked.attribute] ?? [], 'enum');
    case 'attribute':
      return Object.entries(ATTRIBUTES).map(([label, values]) => ({
        label,
        type: 'property',
        detail: values.join(' | '),
      }));
    case 'name':
      return [
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
      ];
  }
}

/** Completions of a policy: attributes with their values, functions, roles, object types, permissions, and ids with their names. */
export const completionsOf =
  (vocabulary: () => Vocabulary) =>
  async (context: CompletionContext): Promise<CompletionResult | null> => {
    const asked = askedAt(context.state.doc.toString(), context.pos);
    if (asked === null || (asked.kind === 'name' && asked.from === asked.to && !context.explicit)) return null;
    const found = await optionsFor(asked, vocabulary());
    if (found.length === 0 || context.aborted) return null;
    const { from, to } = asked;
    // What fits an id is what the service found: the name may hold what is typed.
    return asked.kind === 'id' ? { from, to, options: found, filter: false } : { from, to, options: found };
  };
