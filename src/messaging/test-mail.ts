import { escapeHtml } from '../base/html.ts';
import type { Mail } from './mail.ts';

/** A mail that shows an administrator that mails arrive, in both languages of the service. */
export function testMail(to: string, adminUrl: string): Mail {
  const lines = [
    'This is a test mail of the plugin host. An administrator has asked for it; there is nothing to do.',
    'Это проверочное письмо сервиса плагинов. Его запросил администратор; делать ничего не нужно.',
    adminUrl,
  ];
  return {
    to,
    subject: 'Test mail of the plugin host',
    text: `${lines.join('\n\n')}\n`,
    html: lines.map(line => `<p>${escapeHtml(line)}</p>`).join('\n'),
  };
}
