import { useNavigate, useRouter, useSearch } from '@tanstack/react-router';

declare module '@tanstack/react-router' {
  interface HistoryState {
    /** Whether this entry of the history only opened something over the screen of the one before it. */
    isOverlay?: boolean;
  }
}

export type SearchState = Record<string, string | undefined>;

/**
 * State of a screen that stands in its address, so that a link shows what I see. The back button goes over steps (`isStep`: a
 * tab, a step of an installation), not over filters.
 */
export function useSearchState(): [SearchState, (change: SearchState, isStep?: boolean) => void] {
  const search: SearchState = useSearch({ strict: false });
  const go = useNavigate();
  const set = (change: SearchState, isStep = false): void => {
    void go({ to: '.', search: before => ({ ...before, ...change }), replace: !isStep });
  };
  return [search, set];
}

/**
 * What is opened over a list, as a part of its address: the back button closes it and stays on the list. Closing it by hand goes
 * back as well, unless one came by its link.
 *
 * @param names of the members of the address that name what is open
 */
export function useOverlay(...names: string[]): { open: (change: SearchState) => void; close: () => void } {
  const { history } = useRouter();
  const go = useNavigate();
  return {
    open: change => void go({ to: '.', search: before => ({ ...before, ...change }), state: { isOverlay: true } }),
    close: () => {
      if (history.location.state.isOverlay === true) return history.back();
      const closed = Object.fromEntries(names.map(n => [n, undefined]));
      void go({ to: '.', search: before => ({ ...before, ...closed }), replace: true });
    },
  };
}
