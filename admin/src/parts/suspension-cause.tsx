import { Code } from '@mantine/core';
import { Fragment } from 'react';
import { useTranslation } from 'react-i18next';
import type { Schemas } from '../api/client.ts';
import { When } from './time.tsx';

/** Why something is suspended, in the language of the page. */
export function SuspensionCause({ suspension: s }: { suspension: Schemas['Suspension'] }) {
  const { t } = useTranslation();
  if (s.reason === 'version_crashed')
    return (
      <>
        {t('suspension.version_crashed', { version: s.version ?? '', count: s.crashes.length })}{' '}
        {s.crashes.map((c, k) => (
          <Fragment key={`${c.at} ${c.signal}`}>
            {k > 0 && ', '}
            {c.out_of_memory ? t('suspension.outOfMemory') : c.signal} (<When at={c.at} />)
          </Fragment>
        ))}
      </>
    );
  return (
    <>
      {t(`suspension.${s.reason}`)}
      {/* How long an execution may take says its reason alone. */}
      {s.reason !== 'deadline' && s.failure !== null && s.failure !== '' && (
        <>
          {' '}
          <Code lang="en" style={{ overflowWrap: 'anywhere' }}>
            {s.failure}
          </Code>
        </>
      )}
    </>
  );
}
