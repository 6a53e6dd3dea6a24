import { mailRoutes } from '../api/operation/mail-api.ts';
import { type Config, dataPath } from '../config/load.ts';
import { listUnsentMails } from '../identity/admin-accounts.ts';
import { type Mailer, makeMailer } from '../messaging/mail.ts';
import { temporaryPasswordJob } from '../messaging/temporary-password-job.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';
import { outsideAttention } from './health.ts';

/** What sends mails as the configuration says. */
export function mailerOf(config: Config): Mailer {
  const v = config.values;
  return makeMailer({
    host: v['smtp.host'],
    port: v['smtp.port'],
    username: v['smtp.username'],
    password: v['smtp.password'],
    from: v['smtp.from'],
    directory: dataPath(config, 'mail'),
  });
}

/** Sends temporary passwords by mail, and test mails. */
export function composeMail({ config, db, log, publicBase }: Core): Feature {
  const mailer = mailerOf(config);
  const away = outsideAttention('mail', () => mailer.check());
  const adminUrl = (): string => `${publicBase()}/admin/`;
  const job = temporaryPasswordJob({
    db,
    mailer,
    adminUrl,
    sent: (user, where) => log.info({ user, where }, 'a temporary password was sent'),
  });
  return {
    routes: mailRoutes({ db, mailer, adminUrl }),
    jobs: [job],
    async attention() {
      const [unsent, server] = await Promise.all([listUnsentMails(db), away()]);
      const count = unsent.length;
      const detail = unsent.map(m => `${m.email}: ${m.error}`)[0] ?? null;
      if (count === 0) return server;
      return [...server, { kind: 'mails_unsent', severity: 'bad', plugin: null, count, detail, since: null }];
    },
    close: () => mailer.close(),
  };
}
