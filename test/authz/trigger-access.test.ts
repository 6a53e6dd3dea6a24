import t from 'tap';
import {
  type AccessDecision,
  decideAccess,
  type EffectiveAccess,
  effectiveAccess,
  type PrincipalKind,
} from '../../src/authz/trigger-access.ts';

const show = (d: AccessDecision): string =>
  d.kind === 'allow' ? `allow as ${d.as}` : d.kind === 'refuse' ? `refuse ${d.reason}` : 'evaluate';

/** docs/access.md "The decision", written out: flags user/service, policy, principal, policy result. */
const TABLE: Array<
  [
    user: boolean,
    service: boolean,
    policy: boolean,
    principal: PrincipalKind,
    result: boolean | undefined,
    want: string,
  ]
> = [
  [false, false, false, 'none', undefined, 'allow as public'],
  [false, false, false, 'user', undefined, 'allow as public'],
  [false, false, false, 'service', undefined, 'allow as public'],
  [false, false, true, 'none', undefined, 'refuse no_credential'],
  [false, false, true, 'user', true, 'refuse principal_kind'],
  [false, false, true, 'service', true, 'refuse principal_kind'],
  [true, false, false, 'none', undefined, 'refuse no_credential'],
  [true, false, false, 'user', undefined, 'allow as user'],
  [true, false, false, 'service', undefined, 'refuse principal_kind'],
  [true, false, true, 'none', undefined, 'refuse no_credential'],
  [true, false, true, 'user', undefined, 'evaluate'],
  [true, false, true, 'user', true, 'allow as user'],
  [true, false, true, 'user', false, 'refuse policy'],
  [true, false, true, 'service', true, 'refuse principal_kind'],
  [false, true, false, 'none', undefined, 'refuse no_credential'],
  [false, true, false, 'user', undefined, 'refuse principal_kind'],
  [false, true, false, 'service', undefined, 'allow as service'],
  [false, true, true, 'user', true, 'refuse principal_kind'],
  [false, true, true, 'service', undefined, 'evaluate'],
  [false, true, true, 'service', true, 'allow as service'],
  [false, true, true, 'service', false, 'refuse policy'],
  [true, true, false, 'none', undefined, 'refuse no_credential'],
  [true, true, false, 'user', undefined, 'allow as user'],
  [true, true, false, 'service', undefined, 'allow as service'],
  [true, true, true, 'none', undefined, 'refuse no_credential'],
  [true, true, true, 'user', undefined, 'evaluate'],
  [true, true, true, 'user', true, 'allow as user'],
  [true, true, true, 'user', false, 'refuse policy'],
  [true, true, true, 'service', undefined, 'evaluate'],
  [true, true, true, 'service', true, 'allow as service'],
  [true, true, true, 'service', false, 'refuse policy'],
];

t.test('the access decision answers every row of its table', async t => {
  for (const [allowUserSession, allowServiceKey, policy, principal, result, want] of TABLE) {
    const settings = { enabled: true, allowUserSession, allowServiceKey, policyExpression: policy ? 'true' : '' };
    t.equal(
      show(decideAccess(settings, principal, result)),
      want,
      `user ${allowUserSession} service ${allowServiceKey} policy ${policy} ${principal} ${result}`,
    );
  }
});

t.test('a disabled trigger refuses every caller, whatever else is set', async t => {
  for (const user of [false, true])
    for (const service of [false, true])
      for (const policyExpression of ['', 'true'])
        for (const principal of ['none', 'user', 'service'] as const)
          for (const result of [undefined, true, false]) {
            const settings = { enabled: false, allowUserSession: user, allowServiceKey: service, policyExpression };
            t.equal(show(decideAccess(settings, principal, result)), 'refuse disabled');
          }
});

t.test('over all combinations no caller gets in without a flag for its kind, except on a public trigger', async t => {
  for (const enabled of [false, true])
    for (const user of [false, true])
      for (const service of [false, true])
        for (const policyExpression of ['', 'x'])
          for (const principal of ['none', 'user', 'service'] as const)
            for (const result of [undefined, true, false]) {
              const d = decideAccess(
                { enabled, allowUserSession: user, allowServiceKey: service, policyExpression },
                principal,
                result,
              );
              if (d.kind !== 'allow') continue;
              const isPublic = !user && !service && policyExpression === '';
              const named = (principal === 'user' && user) || (principal === 'service' && service);
              t.ok(
                enabled &&
                  (isPublic
                    ? d.as === 'public'
                    : named && d.as === principal && (policyExpression === '' || result === true)),
              );
            }
});

t.test('the settings page names the effective access in one word', async t => {
  const rows: Array<[boolean, boolean, boolean, string, EffectiveAccess]> = [
    [false, true, true, '', 'disabled'],
    [true, false, false, '', 'public'],
    [true, false, false, 'x', 'nobody'],
    [true, true, false, '', 'user'],
    [true, false, true, 'x', 'service'],
    [true, true, true, '', 'user_or_service'],
  ];
  for (const [enabled, allowUserSession, allowServiceKey, policyExpression, want] of rows)
    t.equal(effectiveAccess({ enabled, allowUserSession, allowServiceKey, policyExpression }), want);
});
