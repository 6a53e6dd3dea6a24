import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching } from '@codemirror/language';
import { type Diagnostic, linter, lintKeymap } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { EditorView, keymap, placeholder } from '@codemirror/view';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { answered, api } from '../api/client.ts';
import { useRefusal } from '../app/may.tsx';
import { styleNonce } from '../app/theme.ts';
import { completionsOf, policyColours, policyLanguage, type Vocabulary } from './language.ts';

const CHECK_DELAY_MS = 300;

const look = EditorView.theme({
  '&': {
    border: '1px solid var(--mantine-color-default-border)',
    borderRadius: 'var(--mantine-radius-md)',
    fontSize: '14px',
  },
  '&.cm-focused': { outline: '2px solid var(--mantine-primary-color-filled)', outlineOffset: '-1px' },
  '.cm-content': {
    fontFamily: 'var(--mantine-font-family-monospace)',
    minHeight: '6.5em',
    caretColor: 'var(--mantine-color-text)',
  },
  '.cm-placeholder': { color: 'var(--mantine-color-dimmed)' },
  '.cm-cursor': { borderLeftColor: 'var(--mantine-color-text)' },
  '.cm-tooltip': {
    background: 'var(--mantine-color-body)',
    border: '1px solid var(--mantine-color-default-border)',
    color: 'var(--mantine-color-text)',
  },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { background: 'var(--mantine-primary-color-filled)', color: '#fff' },
});

/**
 * Text that replaces a selection is put in by the editor. The browser would give it the colours of what it replaces as a style in
 * the page, which the policy of the page forbids, before the editor writes it again.
 */
const replacing = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { data, inputType } = event;
    const { ranges } = view.state.selection;
    const range = ranges[0];
    if (inputType !== 'insertText' || data === null || range === undefined || ranges.length > 1 || range.empty)
      return false;
    event.preventDefault();
    const insert = () => view.state.update(view.state.replaceSelection(data), { userEvent: 'input.type' });
    // Brackets around what is selected, for example.
    const isHandled = view.state
      .facet(EditorView.inputHandler)
      .some(handle => handle(view, range.from, range.to, data, insert));
    if (!isHandled) view.dispatch(insert());
    return true;
  },
});

/** What the service says of a policy while it is written, at the places it means. */
async function problemsOf(expression: string): Promise<Diagnostic[]> {
  if (expression.trim() === '') return [];
  const { errors, warnings } = answered(await api.POST('/api/admin/policies/check', { body: { expression } }));
  const length = expression.length;
  const placed = (
    p: { message: string; position: { start: number; end: number } },
    severity: 'error' | 'warning',
  ): Diagnostic => ({
    from: Math.min(p.position.start, length),
    to: Math.min(Math.max(p.position.end, p.position.start + 1), length),
    message: p.message,
    severity,
    renderMessage: () => Object.assign(document.createElement('span'), { lang: 'en', textContent: p.message }),
  });
  return [...errors.map(e => placed(e, 'error')), ...warnings.map(w => placed(w, 'warning'))];
}

export type PolicyNotice = { message: string; isError: boolean };

/** An editor of policies: highlighting, completion, and the errors of the service at their places. */
export default function PolicyEditor(props: {
  value: string;
  onChange: (expression: string) => void;
  /** What the service says of it, errors first. */
  onProblems?: (problems: readonly PolicyNotice[]) => void;
  label: string;
  hint: string;
}) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const vocabulary = useVocabulary();
  const known = useRef<Vocabulary>(vocabulary);
  known.current = vocabulary;
  useEffect(() => {
    if (place.current === null) return;
    const editor = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: latest.current.value,
        extensions: [
          history(),
          bracketMatching(),
          closeBrackets(),
          policyLanguage,
          policyColours,
          look,
          replacing,
          EditorView.lineWrapping,
          EditorView.cspNonce.of(styleNonce()),
          EditorView.contentAttributes.of({ 'aria-label': latest.current.label }),
          placeholder(latest.current.hint),
          autocompletion({ override: [completionsOf(() => known.current)] }),
          linter(
            async v => {
              const found = await problemsOf(v.state.doc.toString()).catch(() => null);
              // Without an answer what is known stays, until the next change or the save asks again.
              if (found === null) return [];
              latest.current.onProblems?.(found.map(d => ({ message: d.message, isError: d.severity === 'error' })));
              return found;
            },
            { delay: CHECK_DELAY_MS },
          ),
          // Tab goes on to the next field, as everywhere.
          keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
          EditorView.updateListener.of(u => {
            if (u.docChanged) latest.current.onChange(u.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
  }, []);
  // A value from outside: a revision that was restored.
  useEffect(() => {
    const editor = view.current;
    const text = editor?.state.doc.toString();
    if (editor !== null && text !== props.value)
      editor.dispatch({ changes: { from: 0, to: text?.length ?? 0, insert: props.value } });
  }, [props.value]);
  return <div ref={place} />;
}

/** How many ids a completion offers. */
const IDS_SHOWN = 20;

function useVocabulary(): Vocabulary {
  const maySee = useRefusal()('people') === null;
  const roles = useQuery({
    queryKey: ['roles'],
    queryFn: async () => answered(await api.GET('/api/admin/roles')),
    staleTime: 60_000,
  });
  const schema = useQuery({
    queryKey: ['schema'],
    queryFn: async () => answered(await api.GET('/api/admin/schema/definitions')),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return {
    roles: roles.data?.items.map(r => r.role) ?? [],
    objects: (schema.data?.definitions ?? []).map(d => ({
      name: d.name,
      permissions: d.permissions.map(p => p.name),
      relations: d.relations.map(r => r.name),
    })),
    async find(type, search) {
      if (!maySee || schema.data?.definitions.some(d => d.name === type) !== true) return [];
      const query = { type, search, limit: IDS_SHOWN };
      const { data } = await api
        .GET('/api/admin/relationships/objects', { params: { query } })
        .catch(() => ({ data: undefined }));
      return data?.items ?? [];
    },
  };
}
