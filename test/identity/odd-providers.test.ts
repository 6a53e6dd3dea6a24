import t from 'tap';
import { type IdpAccount, IdpLogin } from '../../src/identity/idp-login.ts';
import { makeSecretBox } from '../../src/secrets/secret-box.ts';
import { type OddProvider, startOddProvider } from '../support/odd-provider.ts';

/** Providers that keep to the letter of OpenID Connect, and not to what most of them do (docs/identity.md "Login with an identity provider"). */
const REDIRECT = 'http://127.0.0.1:1/api/auth/idp/callback';

/** Logs in at a provider. @returns the account, or the words of the refusal */
async function logIn(provider: OddProvider, issuer = provider.base): Promise<IdpAccount | string> {
  const login = new IdpLogin(
    {
      issuer,
      clientId: 'plugin-host',
      clientSecret: 'secret',
      scopes: ['openid', 'profile'],
      redirectUri: () => REDIRECT,
    },
    makeSecretBox(Buffer.alloc(32, 7)),
  );
  try {
    const begun = await login.begin('/', false, Date.now());
    const asked = new URL(begun.location).searchParams;
    provider.nonce = asked.get('nonce') ?? '';
    const query = `code=c&state=${asked.get('state')}`;
    return (await login.finish(query, () => begun.value, Date.now())).account;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

t.test('a user has the name and the language that the provider tells, wherever and however it tells them', async t => {
  const provider = await startOddProvider(t);
  const rows: Array<
    [identity: Record<string, unknown>, userInfo: Record<string, unknown> | null, name: string, locale: string | null]
  > = [
    [{ name: 'Анна Иванова', locale: 'ru' }, null, 'Анна Иванова', 'ru'],
    [{}, { name: 'Anna', locale: 'en-GB' }, 'Anna', 'en'],
    [{ locale: 'ru' }, { name: 'Anna', locale: 'en' }, 'Anna', 'ru'],
    [{}, { given_name: 'Анна', middle_name: 'Петровна', family_name: 'Иванова' }, 'Анна Петровна Иванова', null],
    [{ given_name: 'Anna' }, {}, 'Anna', null],
    [{ name: ' ' }, { name: 'Anna' }, 'Anna', null],
    [{}, { 'name#ru-RU': 'Анна', preferred_username: 'anna' }, 'Анна', null],
    [{ preferred_username: 'anna' }, {}, 'anna', null],
    [{ email: 'a@uni.example' }, null, 'a@uni.example', null],
    [{}, null, '', null],
    [{ name: 7 }, { name: 'Anna\0' }, 'Anna', null],
  ];
  for (const [identity, userInfo, name, locale] of rows) {
    provider.says = { identity, userInfo };
    t.match(await logIn(provider), { sub: 'ada', name, locale }, JSON.stringify([identity, userInfo]));
  }
  for (const [tag, locale] of [
    ['ru_RU', 'ru'],
    ['RU', 'ru'],
    ['en-Latn-US', 'en'],
    ['ru_RU.UTF-8', 'ru'],
    ['rus', 'ru'],
    ['eng', 'en'],
    ['run', null],
    ['enm', null],
    ['de', null],
  ] as const) {
    provider.says = { identity: { name: 'A', locale: tag }, userInfo: {} };
    t.match(await logIn(provider), { locale }, tag);
  }
});

t.test('the UserInfo endpoint speaks only of the user who logs in', async t => {
  const provider = await startOddProvider(t);
  provider.says = { identity: {}, userInfo: { sub: 'eve', name: 'Eve', auth_time: 1 } };
  t.match(await logIn(provider), { sub: 'ada', name: '' });
  provider.says = {
    identity: {},
    userInfo: { name: 'Ada', iss: 'x', aud: 'y', auth_time: Math.floor(Date.now() / 1000) },
  };
  t.match(await logIn(provider), { sub: 'ada', name: 'Ada', authenticatedAt: null }, 'it tells no time of the login');
});

t.test(
  'clocks may be five minutes apart in every time of an identity, and a refusal names it and the difference',
  async t => {
    const provider = await startOddProvider(t);
    const now = (): number => Math.floor(Date.now() / 1000);
    const at = async (seconds: number, lifetime = 300): Promise<IdpAccount | string> => {
      const time = now() + seconds;
      const identity = { name: 'A', locale: 'en', iat: time, nbf: time, exp: time + lifetime, auth_time: time };
      provider.says = { identity, userInfo: {} };
      return await logIn(provider);
    };
    for (const seconds of [-240, -60, 60, 240]) t.match(await at(seconds, 60), { sub: 'ada' }, `${seconds} s`);
    t.match(await at(400), /claim "nbf" lies (399|400) s ahead of the clock of this host; at most 300 s are allowed/);
    t.match(await at(-500, 60), /claim "exp" lies 4[34]\d s behind the clock of this host/);
  },
);

t.test('where the provider calls itself otherwise, the refusal has both names', async t => {
  const provider = await startOddProvider(t);
  provider.says = { issuer: `${provider.base}/app/o/uni/`, identity: {}, userInfo: {} };
  const said = await logIn(provider);
  t.match(
    said,
    `idp.issuer is ${provider.base}, and the identity provider there says it is ${provider.base}/app/o/uni/`,
  );
  t.notMatch(said, /does not answer/);
  provider.says = { identity: { iss: 'https://other.example' }, userInfo: {} };
  t.match(await logIn(provider), `it is https://other.example and must be ${provider.base}`);
});
