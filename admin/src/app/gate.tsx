import { Alert, Box, Button, Center } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ComponentType, lazy, Suspense, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { hasSetupToken, onOtherRoles, takesSetupToken } from '../api/client.ts';
import { Away, refusingFor, useReadiness } from '../parts/away.tsx';
import { ProblemAlert } from '../parts/problem.tsx';
import { Waiting } from '../parts/waiting.tsx';
import { Login } from '../screens/login.tsx';
import { Logo } from './logo.tsx';
import { ScreenFailed } from './screen-failed.tsx';
import { useSession } from './session.ts';
import { SmallPage } from './small-page.tsx';

const NewPassword = lazy(() => import('../screens/new-password.tsx'));
const SecondFactor = lazy(() => import('../screens/second-factor.tsx'));
const SetupToken = lazy(() => import('../screens/setup-token.tsx'));

/** What a visitor sees: the setup token's form, the login, the change of a temporary password, or the pages. */
export function Gate() {
  const { t } = useTranslation();
  const session = useSession();
  // The session answers the same with the token as without it.
  const [hasToken, setHasToken] = useState(hasSetupToken);
  const { data, refetch } = session;
  useEffect(() => onOtherRoles(() => void refetch()), [refetch]);
  const link = useQuery({
    queryKey: ['setup-token'],
    enabled: data?.setup_mode === true && hasToken,
    queryFn: takesSetupToken,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const isOpened = hasToken && link.data !== false;
  const first =
    data === undefined || data.page_proof_required === true || !data.authenticated
      ? null
      : data.setup_mode && !isOpened
        ? 'setup-token'
        : data.admin?.must_change_password === true
          ? 'new-password'
          : data.admin?.must_add_second_factor === true
            ? 'second-factor'
            : 'screens';
  const screens = useScreens(first === 'screens');
  if ((data === undefined && session.error === null) || link.isLoading) return <FrameWaiting />;
  if (data === undefined)
    return (
      <Center mih="100vh" p="md">
        <NoSession error={session.error} retry={() => void session.refetch()} />
      </Center>
    );
  if (data.page_proof_required === true) return <LostProof />;
  if (!data.authenticated) return <Login hasProvider={data.idp} passwordless={data.passwordless} />;
  if (first === 'screens') {
    if (screens.error !== undefined)
      return (
        <Center mih="100vh" p="md">
          <ScreenFailed error={screens.error} />
        </Center>
      );
    return screens.Screens === null ? <FrameWaiting /> : <screens.Screens />;
  }
  return (
    <Suspense fallback={<SmallWaiting />}>
      {first === 'setup-token' ? (
        <SetupToken wasWrong={link.data === false} onTaken={() => setHasToken(true)} />
      ) : first === 'new-password' ? (
        <SmallPage title={t('password.temporaryTitle')}>
          <NewPassword isTemporary />
        </SmallPage>
      ) : (
        <SmallPage title={t('secondFactor.mustTitle')} about={t('secondFactor.must')}>
          <SecondFactor />
        </SmallPage>
      )}
    </Suspense>
  );
}

/** Why it cannot be said who is logged in: mostly what the service needs is away. It goes on by itself when that is back. */
function NoSession({ error, retry }: { error: Error | null; retry: () => void }) {
  const { data } = useReadiness();
  const missing = refusingFor(data);
  if (missing !== null) return <Away missing={missing} />;
  return <ProblemAlert error={error} onRetry={retry} />;
}

/** In the place of a small page that is loaded. */
const SmallWaiting = () => (
  <Center mih="100vh" p="md">
    <Box w="100%" maw={440}>
      <Waiting />
    </Box>
  </Center>
);

/** The frame with nothing in it yet: until it is known who is logged in, and until the screens are loaded. */
const FrameWaiting = () => (
  <div className="late">
    <div className="frame-head">
      <Logo isShort />
    </div>
    <div className="frame-content">
      <Waiting />
    </div>
  </div>
);

type LoadedScreens = { Screens: ComponentType | null; error?: unknown };

/**
 * The screens, which come after the login, once the one at the address is there too. Not by Suspense: React shows what a
 * boundary has waited for only 300 ms after its fallback.
 */
function useScreens(isWanted: boolean): LoadedScreens {
  const [loaded, setLoaded] = useState<LoadedScreens>({ Screens: null });
  useEffect(() => {
    if (!isWanted) return setLoaded({ Screens: null });
    let isStale = false;
    import('./screens.tsx')
      .then(async ({ default: Screens, loadScreen }) => {
        await loadScreen();
        if (!isStale) setLoaded({ Screens });
      })
      .catch((error: unknown) => {
        if (!isStale) setLoaded({ Screens: null, error });
      });
    return () => {
      isStale = true;
    };
  }, [isWanted]);
  return loaded;
}

/** The administrator has logged in from another window: a page opened again gets the new proof. */
function LostProof() {
  const { t } = useTranslation();
  const isReloaded = performance.getEntriesByType('navigation').some(e => 'type' in e && e.type === 'reload');
  if (!isReloaded) {
    location.reload();
    return null;
  }
  return (
    <Center mih="100vh" p="md">
      <Alert color="orange" title={t('gate.unprotectedTitle')}>
        {t('gate.unprotected')}
        <Button mt="sm" size="xs" display="block" onClick={() => location.reload()}>
          {t('gate.reload')}
        </Button>
      </Alert>
    </Center>
  );
}
