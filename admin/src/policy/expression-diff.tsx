import { Code } from '@mantine/core';
import { diffWordsWithSpace } from 'diff';
import { readable } from '../app/theme.ts';

type Part = { kind: 'same' | 'added' | 'removed'; text: string; at: number };

/** Pieces of both, in order; `at` counts their letters. */
function partsOf(before: string, after: string): Part[] {
  let at = 0;
  return diffWordsWithSpace(before, after).map(({ added, removed, value }) => {
    at += value.length;
    return { kind: added ? 'added' : removed ? 'removed' : 'same', text: value, at };
  });
}

/**
 * A policy with what it has and the one before lacks, and the other way round.
 *
 * @param before null when there was none or it is not known: then nothing is marked
 */
export function ExpressionDiff({ after, before }: { before: string | null; after: string }) {
  const parts: Part[] = before === null ? [{ kind: 'same', text: after, at: 0 }] : partsOf(before, after);
  return (
    <Code block style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
      {parts.map(({ at, kind, text }) =>
        kind === 'added' ? (
          <ins key={at} style={{ color: readable('green') }}>
            {text}
          </ins>
        ) : kind === 'removed' ? (
          <del key={at} style={{ color: readable('red') }}>
            {text}
          </del>
        ) : (
          text
        ),
      )}
    </Code>
  );
}
