import type { AddressInfo } from 'node:net';
import PostalMime from 'postal-mime';
import { SMTPServer } from 'smtp-server';

export type ReceivedMail = { from: string; to: string[]; subject: string; text: string; html: string };

export type MailServer = {
  port: number;
  mails: ReceivedMail[];
  /** The mail after `n` others, once it has come. */
  nth(n: number): Promise<ReceivedMail>;
  /** Holds its answers back from now on, until the returned function is called. */
  hold(): () => void;
  close(): Promise<void>;
};

/** A real SMTP server on loopback that keeps what it is given. */
export async function startMailServer(port = 0): Promise<MailServer> {
  const mails: ReceivedMail[] = [];
  let come: (() => void) | null = null;
  let held: Promise<void> = Promise.resolve();
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        void PostalMime.parse(Buffer.concat(chunks)).then(mail => {
          const { mailFrom, rcptTo } = session.envelope;
          mails.push({
            from: mailFrom === false ? '' : mailFrom.address,
            to: rcptTo.map(r => r.address),
            subject: mail.subject ?? '',
            text: mail.text ?? '',
            html: mail.html ?? '',
          });
          come?.();
          void held.then(() => done());
        });
      });
    },
  });
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve));
  return {
    port: (server.server.address() as AddressInfo).port,
    mails,
    async nth(n) {
      for (;;) {
        const mail = mails[n];
        if (mail !== undefined) return mail;
        await new Promise<void>(resolve => {
          come = resolve;
        });
      }
    },
    hold() {
      let release = (): void => {};
      held = new Promise(resolve => {
        release = resolve;
      });
      return release;
    },
    close: () => new Promise(resolve => server.close(() => resolve())),
  };
}
