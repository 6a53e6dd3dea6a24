import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router';
import { hideProblems } from '../parts/problem.tsx';
import { Waiting } from '../parts/waiting.tsx';
import { NotFound } from './not-found.tsx';
import { ScreenFailed } from './screen-failed.tsx';
import { Shell } from './shell.tsx';

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });
const admin = createRoute({ getParentRoute: () => root, path: '/admin' });

type Search = Record<string, string | undefined>;

/** What stands in the address behind `?`: filters and tabs, as text. */
const textSearch = (search: Record<string, unknown>): Search =>
  Object.fromEntries(
    Object.entries(search).map(([k, v]) => [k, v === undefined || v === null ? undefined : String(v)]),
  );

const screen = <const P extends string>(path: P, load: () => Promise<{ default: () => React.ReactNode }>) =>
  createRoute({ getParentRoute: () => admin, path, validateSearch: textSearch, component: lazyRouteComponent(load) });

const tree = root.addChildren([
  admin.addChildren([
    screen('/', () => import('../screens/overview.tsx')),
    screen('/setup', () => import('../screens/setup.tsx')),
    screen('/plugins', () => import('../screens/plugins.tsx')),
    screen('/plugins/gallery', () => import('../screens/gallery.tsx')),
    screen('/plugins/upload', () => import('../screens/upload.tsx')),
    screen('/plugins/$id', () => import('../screens/plugin.tsx')),
    screen('/plugins/$id/triggers/$name', () => import('../screens/trigger.tsx')),
    screen('/plugins/$id/commands/$name', () => import('../screens/command.tsx')),
    screen('/plugins/$id/executions/$execution', () => import('../screens/execution.tsx')),
    screen('/executions', () => import('../screens/executions.tsx')),
    screen('/files', () => import('../screens/files.tsx')),
    screen('/trust', () => import('../screens/trust.tsx')),
    screen('/why', () => import('../screens/why.tsx')),
    screen('/people', () => import('../screens/people.tsx')),
    screen('/people/$user', () => import('../screens/person.tsx')),
    screen('/roles', () => import('../screens/roles.tsx')),
    screen('/administrators', () => import('../screens/administrators.tsx')),
    screen('/keys', () => import('../screens/admin-keys.tsx')),
    screen('/service-keys', () => import('../screens/service-keys.tsx')),
    screen('/relationships', () => import('../screens/relationships.tsx')),
    screen('/university', () => import('../screens/university.tsx')),
    screen('/university/imports/$import', () => import('../screens/import.tsx')),
    screen('/outbox', () => import('../screens/outbox.tsx')),
    screen('/messages', () => import('../screens/messages.tsx')),
    screen('/events', () => import('../screens/events.tsx')),
    screen('/events/subscriptions/$subscription', () => import('../screens/subscription.tsx')),
    screen('/audit', () => import('../screens/audit.tsx')),
    screen('/system', () => import('../screens/system.tsx')),
    screen('/account', () => import('../screens/account.tsx')),
  ]),
]);

export const router = createRouter({
  routeTree: tree,
  defaultPreload: 'intent',
  trailingSlash: 'preserve',
  scrollRestoration: true,
  // Values of the address are text, without quotes around what looks like a number.
  parseSearch: text => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: search => {
    const set = Object.entries(search).filter(([, v]) => v !== undefined && v !== '');
    return set.length === 0 ? '' : `?${new URLSearchParams(set.map(([k, v]) => [k, String(v)]))}`;
  },
  defaultErrorComponent: ({ error }) => <ScreenFailed error={error} />,
  defaultPendingComponent: () => <Waiting />,
});

router.subscribe('onBeforeNavigate', ({ pathChanged }) => {
  if (pathChanged) hideProblems();
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
