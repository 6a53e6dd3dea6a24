import type { Log } from '../base/log.ts';
import { type Config, dataPath } from '../config/load.ts';
import type { Database } from '../db/database.ts';
import type { JobQueue } from '../jobs.ts';
import { makeMailer } from '../messaging/mail.ts';
import { temporaryPasswordJob } from '../messaging/temporary-password-job.ts';

/** Builds what sends mail: the way out, and the job of temporary passwords. */
export function composeMail(parts: {
  db: Database;
  config: Config;
  log: Log;
  /** Address of the admin page. */
  adminUrl(): string;
}): { job: JobQueue<object>; close(): void } {
  const { adminUrl, config, db, log } = parts;
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
    adminUrl,
    sent: (user, where) => log.info({ user, where }, 'a temporary password was sent'),
  });
  return { job, close: () => mailer.close() };
}
