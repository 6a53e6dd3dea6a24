import { RouterProvider } from '@tanstack/react-router';
import { router } from './router.tsx';

/** All screens, by their addresses. */
export default function Screens() {
  return <RouterProvider router={router} />;
}

let loading: Promise<void> | null = null;

/** Loads the code of the screen at the address, once: a router that was shown before waits for its page to come back. */
export function loadScreen(): Promise<void> {
  loading ??= router.load();
  return loading;
}
