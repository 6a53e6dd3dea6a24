import { RouterProvider } from '@tanstack/react-router';
import { router } from './router.tsx';

/** All screens, by their addresses. */
export default function Screens() {
  return <RouterProvider router={router} />;
}
