import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import nodemailer from 'nodemailer';

export type Mail = { to: string; subject: string; text: string; html: string };

export type MailOptions = {
  /** Empty: mails are written to files. */
  host: string;
  port: number;
  username: string;
  password: string;
  from: string;
  /** Directory of the files. */
  directory: string;
};

export type Mailer = {
  /**
   * @returns where the mail went, for the log
   * @throws Error when it was not taken over
   */
  send(mail: Mail): Promise<string>;
  /**
   * Connects to the server and greets it.
   *
   * @param withLogin also logs in; done often, that would look like an attack
   * @throws Error when it does not answer in time, or does not take the login
   */
  check(withLogin?: boolean): Promise<void>;
  close(): void;
};

const CONNECT_MS = 10_000;
const SILENCE_MS = 30_000;
/** An administrator waits for the answer of a check. */
const CHECK_MS = 1500;
const IMPLICIT_TLS_PORT = 465;

const isLoopbackHost = (host: string): boolean => host === 'localhost' || host === '::1' || /^127\./.test(host);

/** Sends by SMTP, or writes `<data.dir>/mail/*.eml` when no server is configured (docs/operating.md "Mail"). */
export function makeMailer(o: MailOptions): Mailer {
  // Nothing a mail is made of may name a file or an address to be read.
  const common = { disableFileAccess: true, disableUrlAccess: true };
  if (o.host === '') return toFiles(o, common);
  const server = {
    ...common,
    host: o.host,
    port: o.port,
    secure: o.port === IMPLICIT_TLS_PORT,
    // A password is never sent in the clear, except on this machine.
    requireTLS: o.username !== '' && !isLoopbackHost(o.host),
  };
  const transport = nodemailer.createTransport({
    ...server,
    ...(o.username === '' ? {} : { auth: { user: o.username, pass: o.password } }),
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
  });
  const checks = nodemailer.createTransport({
    ...server,
    connectionTimeout: CHECK_MS,
    greetingTimeout: CHECK_MS,
    socketTimeout: CHECK_MS,
  });
  return {
    async send(mail) {
      await transport.sendMail({ ...mail, from: o.from });
      return `${o.host}:${o.port}`;
    },
    async check(withLogin = false) {
      await (withLogin ? transport : checks).verify();
    },
    close() {
      transport.close();
      checks.close();
    },
  };
}

function toFiles(o: MailOptions, common: { disableFileAccess: boolean; disableUrlAccess: boolean }): Mailer {
  const transport = nodemailer.createTransport({ ...common, streamTransport: true, buffer: true });
  return {
    async send(mail) {
      // Quoted-printable, so that a temporary password can be read in the file.
      const { message } = await transport.sendMail({ ...mail, from: o.from, textEncoding: 'quoted-printable' });
      if (!Buffer.isBuffer(message)) throw new Error('the mail was not built in memory');
      fs.mkdirSync(o.directory, { recursive: true, mode: 0o700 });
      const name = `${new Date().toISOString().replaceAll(':', '-')}-${randomBytes(4).toString('hex')}.eml`;
      const file = path.join(o.directory, name);
      fs.writeFileSync(`${file}.part`, message, { mode: 0o600 });
      fs.renameSync(`${file}.part`, file);
      return file;
    },
    // A full disk is a check of its own.
    check: () => Promise.resolve(),
    close: () => transport.close(),
  };
}
