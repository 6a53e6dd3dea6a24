import { useNavigate, useSearch } from '@tanstack/react-router';

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
