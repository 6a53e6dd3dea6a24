import { escapeHtml } from '../base/html.ts';
import type { Mail } from './mail.ts';

export type TemporaryPassword = {
  email: string;
  password: string;
  until: Date;
  locale: 'ru' | 'en';
  /** Address of the admin page. */
  adminUrl: string;
};

const TEXTS = {
  en: {
    subject: 'Your access to the plugin host',
    hello: 'Hello,',
    why: 'you have been given access to the administration of the plugin host.',
    page: 'Page',
    email: 'Email',
    password: 'Temporary password',
    until: (t: string) => `The password is valid until ${t} and must be changed at the first login.`,
    unexpected: 'If you did not expect this message, tell the administrators and do nothing else.',
    timeLocale: 'en-GB',
  },
  ru: {
    subject: 'Доступ к управлению плагинами',
    hello: 'Здравствуйте!',
    why: 'Вам открыт доступ к управлению сервисом плагинов.',
    page: 'Страница',
    email: 'Эл. почта',
    password: 'Временный пароль',
    until: (t: string) => `Пароль действует до ${t}; при первом входе его нужно сменить.`,
    unexpected: 'Если вы не ждали этого письма, сообщите администраторам и ничего не делайте.',
    timeLocale: 'ru-RU',
  },
} as const;

/** The mail that brings an administrator the temporary password, as text and as HTML, in the language of the user. */
export function temporaryPasswordMail(p: TemporaryPassword): Mail {
  const t = TEXTS[p.locale];
  const until = new Intl.DateTimeFormat(t.timeLocale, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });
  const validity = t.until(`${until.format(p.until)} UTC`);
  const rows = [
    [t.page, p.adminUrl],
    [t.email, p.email],
    [t.password, p.password],
  ] as const;
  const html = rows
    .map(([name, value]) => {
      const shown =
        value === p.adminUrl
          ? `<a href="${escapeHtml(value)}">${escapeHtml(value)}</a>`
          : `<code>${escapeHtml(value)}</code>`;
      return `<tr><td>${name}</td><td>${shown}</td></tr>`;
    })
    .join('\n');
  return {
    to: p.email,
    subject: t.subject,
    text: `${t.hello}\n\n${t.why}\n\n${rows.map(([name, value]) => `${name}: ${value}`).join('\n')}\n\n${validity}\n\n${t.unexpected}\n`,
    html: `<!doctype html>
<html lang="${p.locale}">
<meta charset="utf-8">
<title>${t.subject}</title>
<body style="font-family: sans-serif">
<p>${t.hello}</p>
<p>${t.why}</p>
<table cellpadding="4">
${html}
</table>
<p>${validity}</p>
<p>${t.unexpected}</p>
</body>
</html>
`,
  };
}
