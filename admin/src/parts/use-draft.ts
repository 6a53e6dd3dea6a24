import { useState } from 'react';

/** What is typed over something that is saved. */
export type Draft<T> = {
  /** What the typing began from. */
  saved: T;
  value: T;
  set: (value: T) => void;
  isChanged: boolean;
  /** Whether something else was saved here meanwhile: saving the draft is refused then (412). */
  isOutdated: boolean;
  /** Drops the draft. */
  drop: () => void;
  /** Drops the draft for what is saved now. */
  load: () => void;
  /** Keeps the draft, which is then saved over what is saved now. */
  keep: () => void;
  /** @param send sends a value with the tag of the settings it belongs to. @throws what `send` throws */
  save: (value: T, send: (value: T, tag: string) => Promise<unknown>) => Promise<void>;
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
  /** What was sent last, and the draft it was sent from: what is typed after that stays. */
  const [sent, setSent] = useState<{ value: T; from: T } | null>(null);
  const isAsBefore = isSame(saved, state.saved);
  const isOwn = sent !== null && isSame(saved, sent.value);
  const isChanged = !isSame(state.value, state.saved);
  const isOutdated = !isAsBefore && !isOwn && isChanged && !isSame(state.value, saved);
  if (state.tag !== tag && !isOutdated) {
    const isTypedOn = isAsBefore || (isOwn && !isSame(state.value, sent.from));
    setState({ saved, tag, value: isTypedOn ? state.value : saved });
    // The next one who saves that value may be another administrator.
    if (isOwn) setSent(null);
  }
  return {
    saved: state.saved,
    value: state.value,
    set: value => setState(now => ({ ...now, value })),
    isChanged,
    isOutdated,
    drop: () => setState(now => ({ ...now, value: now.saved })),
    load: () => setState({ saved, tag, value: saved }),
    keep: () => setState(now => ({ saved, tag, value: now.value })),
    async save(value, send) {
      setSent({ value, from: state.value });
      try {
        await send(value, state.tag);
      } catch (problem) {
        setSent(null);
        throw problem;
      }
    },
  };
}
