import { Alert, Button, Center, Loader } from '@mantine/core';
import { lazy, Suspense, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { hasSetupToken, onOtherRoles } from '../api/client.ts';
import { ProblemAlert } from '../parts/problem.tsx';
import { Login } from '../screens/login.tsx';
import { useSession } from './session.ts';
import { SmallPage } from './small-page.tsx';

/** The screens come after the login. */
const Screens = lazy(() => import('./screens.tsx'));
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
  if (data === undefined)
    return (
      <Center mih="100vh" p="md">
        {session.error === null ? <Loader /> : <ProblemAlert error={session.error} onRetry={() => session.refetch()} />}
      </Center>
    );
  if (data.page_proof_required === true) return <LostProof />;
  if (!data.authenticated) return <Login hasProvider={data.idp} />;
  return (
    <Suspense
      fallback={
        <Center mih="100vh">
          <Loader />
        </Center>
      }
    >
      {data.setup_mode && !hasToken ? (
        <SetupToken onTaken={() => setHasToken(true)} />
      ) : data.admin?.must_change_password === true ? (
        <SmallPage title={t('password.temporaryTitle')}>
          <NewPassword isTemporary />
        </SmallPage>
      ) : data.admin?.must_add_second_factor === true ? (
        <SmallPage title={t('secondFactor.mustTitle')} about={t('secondFactor.must')}>
          <SecondFactor />
        </SmallPage>
      ) : (
        <Screens />
      )}
    </Suspense>
  );
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
