import { mailRoutes } from '../api/mail-api.ts';
import { dataPath } from '../config/load.ts';
import { listUnsentMails } from '../identity/admin-accounts.ts';
import { makeMailer } from '../messaging/mail.ts';
import { temporaryPasswordJob } from '../messaging/temporary-password-job.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';

/** Sends temporary passwords by mail, and test mails. */
export function composeMail({ config, db, log, publicBase }: Core): Feature {
  const v = config.values;
  const mailer = makeMailer({
    host: v['smtp.host'],
    port: v['smtp.port'],
    username: v['smtp.username'],
    password: v['smtp.password'],
    from: v['smtp.from'],
    directory: dataPath(config, 'mail'),
  });
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
      const unsent = await listUnsentMails(db);
      const detail = unsent.map(m => `${m.email}: ${m.error}`)[0] ?? null;
      return unsent.length === 0
        ? []
        : [{ kind: 'mails_unsent', severity: 'bad', plugin: null, count: unsent.length, detail, since: null }];
    },
    close: () => mailer.close(),
  };
}
