import { dataPath } from '../config/load.ts';
import { makeMailer } from '../messaging/mail.ts';
import { temporaryPasswordJob } from '../messaging/temporary-password-job.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';

/** Sends temporary passwords by mail. */
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
  const job = temporaryPasswordJob({
    db,
    mailer,
    adminUrl: () => `${publicBase()}/admin/`,
    sent: (user, where) => log.info({ user, where }, 'a temporary password was sent'),
  });
  return { jobs: [job], close: () => mailer.close() };
}
