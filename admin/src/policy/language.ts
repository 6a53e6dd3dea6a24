import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from '@codemirror/language';
import { tags } from '@lezer/highlight';
import i18next from 'i18next';
import { readable } from '../app/theme.ts';

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

/** The type of the objects whose ids an attribute holds. */
const IDS_OF: Readonly<Record<string, string>> = { external_id: 'user', groups: 'study_group' };

/** Of which type the id in quotes is: the last argument of a check, or a value of an attribute with ids; null for another text. */
function typeOfId(before: string, after: string): string | null {
  const called = LAST_ARGUMENT.exec(before)?.[1];
  if (called !== undefined) return called;
  const attribute = COMPARED.exec(before)?.[1] ?? IN_ATTRIBUTE.exec(after)?.[1];
  return IDS_OF[attribute ?? ''] ?? null;
}

/** The type in front of the id: `check("view_all", "faculty", "` and `is_member("study_group", "`. */
const LAST_ARGUMENT = /\b(?:check\(\s*["'][^"']*["']\s*,|is_member\()\s*["']([\w-]+)["']\s*,\s*["'][^"']*$/;
/** An attribute in front of a value it is compared with, and one behind a value it may hold: `"cs-101" in user.groups`. */
const COMPARED = /user\.(\w+)\s*(?:[=!]=|in)\s*\[?[^&|]*["'][^"']*$/;
const IN_ATTRIBUTE = /^[^"']*["']\s*in\s+user\.(\w+)/;

/** What the quoted text around the cursor may be: which argument of which function, or a value of which attribute. */
function inQuotes(before: string, after: string, { objects, roles }: Vocabulary): Completion[] {
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
  const attribute = COMPARED.exec(before)?.[1] ?? IN_ATTRIBUTE.exec(after)?.[1] ?? '';
  return attribute === 'roles'
    ? options(roles, 'constant', i18next.t('policy.role'))
    : options(ATTRIBUTES[attribute] ?? [], 'enum');
}

/** Ids as the service finds them, with the names they have. */
async function idsIn(
  { find }: Vocabulary,
  type: string,
  search: string,
  from: number,
): Promise<CompletionResult | null> {
  const found = await find(type, search);
  const labels = found.map(
    ({ id, name }): Completion => ({
      ...{ label: id, apply: id.replace(/["'\\]/g, '\\$&'), type: 'text' },
      ...(name === null ? {} : { detail: name }),
    }),
  );
  // What fits is what the service found: the name may hold what is typed.
  return labels.length === 0 ? null : { from, options: labels, filter: false };
}

/** Completions of a policy: attributes with their values, functions, roles, object types, permissions, and ids with their names. */
export const completionsOf =
  (vocabulary: () => Vocabulary) =>
  (context: CompletionContext): CompletionResult | Promise<CompletionResult | null> | null => {
    const line = context.state.doc.lineAt(context.pos);
    const before = line.text.slice(0, context.pos - line.from);
    const after = line.text.slice(context.pos - line.from);
    const quoted = /["']([^"']*)$/.exec(before);
    const isQuoted = quoted !== null && (before.match(/["']/g)?.length ?? 0) % 2 === 1;
    if (isQuoted) {
      const text = quoted[1] ?? '';
      const from = context.pos - text.length;
      const type = typeOfId(before, after);
      if (type !== null) return idsIn(vocabulary(), type, text, from);
      return { from, options: inQuotes(before, after, vocabulary()) };
    }
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
