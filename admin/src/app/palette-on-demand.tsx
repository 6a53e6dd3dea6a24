import { useHotkeys } from '@mantine/hooks';
import { lazy, Suspense, useSyncExternalStore } from 'react';

const Palette = lazy(() => import('./palette.tsx'));

let isWanted = false;
const listeners = new Set<() => void>();

/** Opens the palette, whose code comes when it is wanted for the first time. */
export function openPalette(): void {
  isWanted = true;
  for (const listener of listeners) listener();
  void import('./palette.tsx').then(p => p.open());
}

/** Ctrl K anywhere, and `/` outside of fields. */
export function PaletteOnDemand() {
  const isHere = useSyncExternalStore(
    listener => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => isWanted,
  );
  // In a field as well: no field has a use of its own for it.
  useHotkeys([['mod+K', openPalette]], [], true);
  // On a keyboard of other letters the same key.
  const unlessLatin = (event: KeyboardEvent): void => {
    if (!/^[a-z]$/i.test(event.key)) openPalette();
  };
  useHotkeys([['mod+K', unlessLatin, { usePhysicalKeys: true }]], [], true);
  useHotkeys([['/', openPalette]]);
  return isHere ? (
    <Suspense>
      <Palette />
    </Suspense>
  ) : null;
}
