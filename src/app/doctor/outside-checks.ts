import type { Config } from '../../config/load.ts';
import { assertProvider } from '../../identity/idp-login.ts';
import { mailerOf } from '../mail.ts';
import { messengersOf } from '../messengers.ts';
import type { Check } from './check.ts';

type Look = (name: string, look: () => Promise<string>) => Promise<Check>;

/** Greets the mail server and logs in, as before a mail; sends none. */
async function mail(config: Config): Promise<string> {
  const v = config.values;
  const mailer = mailerOf(config);
  try {
    await mailer.check(true);
  } finally {
    mailer.close();
  }
  return `${v['smtp.host']}:${v['smtp.port']} answers${v['smtp.username'] === '' ? '' : ` and takes the login of ${v['smtp.username']}`}`;
}

/** Asks the identity provider for its configuration, as the first login does. */
async function identityProvider(config: Config): Promise<string> {
  const v = config.values;
  await assertProvider({ issuer: v['idp.issuer'], clientId: v['idp.client_id'], clientSecret: v['idp.client_secret'] });
  return `${v['idp.issuer']} answers`;
}

/** A messenger that a command asks has to answer in time like everything else. */
const MESSENGER_MS = 10_000;

/**
 * The servers of others that are set up, each asked as the service would: mail, messengers, the identity provider.
 *
 * @param check makes a row of what was found
 */
export function outsideChecks(config: Config, check: Look): Array<Promise<Check>> {
  const v = config.values;
  const { channels, close } = messengersOf(config);
  const messengers = [...channels.values()].map(channel =>
    check(channel.name.toLowerCase(), async () => {
      await channel.check(AbortSignal.timeout(MESSENGER_MS));
      return 'it answers, and takes our token';
    }),
  );
  void Promise.all(messengers).then(close);
  return [
    ...(v['smtp.host'] === '' ? [] : [check('mail', () => mail(config))]),
    ...(v['idp.issuer'] === '' ? [] : [check('identity provider', () => identityProvider(config))]),
    ...messengers,
  ];
}
