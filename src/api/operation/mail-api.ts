import { z } from 'zod';
import { appendAudit } from '../../audit/audit-log.ts';
import { messageOf } from '../../base/errors.ts';
import type { Database } from '../../db/database.ts';
import type { Mailer } from '../../messaging/mail.ts';
import { testMail } from '../../messaging/test-mail.ts';
import { actorOf } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import type { Route } from '../contract/route.ts';

export type MailApiParts = {
  db: Database;
  mailer: Mailer;
  /** Address of the administration pages. */
  adminUrl(): string;
};

const latency = z.int().nonnegative();
const trial = z
  .discriminatedUnion('ok', [
    z.object({
      ok: z.literal(true),
      latency_ms: latency,
      where: z.string().describe('Mail server that took it over, or the file it was written to'),
    }),
    z.object({ ok: z.literal(false), latency_ms: latency, error: z.string().describe('What the mail server said') }),
  ])
  .meta({ id: 'MailTrial' });

/** Mail of the service (docs/operating.md "Mail"). */
export const mail = resource('Mail', 'Whether the service can send mail.', {
  test: {
    method: 'POST',
    path: '/api/admin/mail/test',
    guard: 'admin_recent',
    key: ['admin'],
    skipChangeBarrier: true,
    summary: 'Send a test mail',
    description: 'It goes the way temporary passwords go. A mail that is not taken over is an answer with ok: false.',
    body: z.strictObject({ to: z.email('must be a mail address').max(254) }),
    replies: { 200: trial },
    example: { body: { to: 'ada@uni.example' } },
  },
});

const test: Handle<typeof mail.test, MailApiParts> = async (parts, { body, caller, request }) => {
  const { to } = await body();
  // First: no mail leaves without an entry.
  await appendAudit(parts.db, actorOf(caller, request), {
    action: 'mail.test',
    objectType: 'mail',
    objectId: 'test',
    after: { to },
  });
  const began = performance.now();
  const passed = (): number => Math.round(performance.now() - began);
  try {
    const where = await parts.mailer.send(testMail(to, parts.adminUrl()));
    return { status: 200, json: { ok: true, latency_ms: passed(), where } };
  } catch (error) {
    return { status: 200, json: { ok: false, latency_ms: passed(), error: messageOf(error) } };
  }
};

export const mailRoutes = (parts: MailApiParts): Route[] => serve(mail, parts, { test });
