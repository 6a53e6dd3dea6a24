import { z } from 'zod';
import type { Database } from '../db/database.ts';
import { giveUpMail } from '../identity/admin-accounts.ts';
import { mailTemporaryPassword } from '../identity/admin-appointments.ts';
import type { JobQueue } from '../jobs.ts';
import type { Mailer } from './mail.ts';
import { temporaryPasswordMail } from './temporary-password-mail.ts';

export const TEMPORARY_PASSWORD_QUEUE = 'mail_temporary_password';

const job = z.object({ userId: z.number(), request: z.uuid() });

export type TemporaryPasswordJobParts = {
  db: Database;
  mailer: Mailer;
  adminUrl(): string;
  /** Told where each mail went; nothing of its content. */
  sent(userId: number, where: string): void;
};

/** Mails a temporary password; about an hour of attempts, so that a server may be down for a while. */
export function temporaryPasswordJob(parts: TemporaryPasswordJobParts): JobQueue<z.infer<typeof job>> {
  return {
    name: TEMPORARY_PASSWORD_QUEUE,
    parse: data => job.parse(data),
    run: order =>
      mailTemporaryPassword(parts.db, order, async ({ email, locale, password, until }) => {
        const mail = temporaryPasswordMail({ email, locale, password, until, adminUrl: parts.adminUrl() });
        parts.sent(order.userId, await parts.mailer.send(mail));
      }),
    gaveUp: order => giveUpMail(parts.db, order),
    attemptsMax: 20,
    firstDelaySeconds: 2,
    delaySecondsMax: 300,
    seconds: 120,
  };
}
