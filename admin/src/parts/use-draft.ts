import { useState } from 'react';

/** What is typed over something that is saved. */
export type Draft<T> = {
  /** What the typing began from. */
  saved: T;
  /** Tag with which the draft is saved. */
  tag: string;
  value: T;
  set: (value: T) => void;
  isChanged: boolean;
  /** Whether something else was saved here meanwhile: saving the draft is refused then (412). */
  isOutdated: boolean;
  /** Drops the draft for what is saved now. */
  load: () => void;
  /** Keeps the draft, which is then saved over what is saved now. */
  keep: () => void;
};

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/**
 * A draft of one member of settings. It follows what is read again until something is typed. From then on it stays, and
 * its tag with it where that member was changed: it never overwrites unseen what another administrator has saved.
 *
 * @param saved as read last; plain JSON
 * @param tag of the settings it was read with
 */
export function useDraft<T>(saved: T, tag: string): Draft<T> {
  const [state, setState] = useState({ saved, tag, value: saved });
  const isAsBefore = isSame(saved, state.saved);
  const isChanged = !isSame(state.value, state.saved);
  const isOutdated = !isAsBefore && isChanged && !isSame(state.value, saved);
  if (state.tag !== tag && !isOutdated) setState(isAsBefore ? { ...state, tag } : { saved, tag, value: saved });
  return {
    ...state,
    set: value => setState(now => ({ ...now, value })),
    isChanged,
    isOutdated,
    load: () => setState({ saved, tag, value: saved }),
    keep: () => setState(now => ({ saved, tag, value: now.value })),
  };
}
