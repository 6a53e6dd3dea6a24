import type { Language } from './channel.ts';

/** What the host itself says in chats. Nothing of it tells how things are inside. */

export type HelpLine = { command: string; description: string };

type Answers = {
  unknown(command: string): string;
  notACommand: string;
  several(command: string, choices: readonly string[]): string;
  denied(command: string): string;
  linkFirst(command: string): string;
  disabled(command: string): string;
  failed(command: string): string;
  busy: string;
  filesFailed: string;
  tooManyFiles(given: number, max: number): string;
  welcome: string;
  help(lines: readonly HelpLine[], isLinked: boolean): string;
  linked: string;
  wrongCode: string;
  tooManyCodes: string;
  linkPrivately: string;
  howToLink: string;
  unlinked: string;
  notLinked: string;
};

const listed = (lines: readonly HelpLine[]): string =>
  lines.map(l => `/${l.command}${l.description === '' ? '' : ` — ${l.description}`}`).join('\n');

const RU: Answers = {
  unknown: command => `Команды /${command} здесь нет. Что есть, покажет /help.`,
  notACommand: 'Я понимаю команды. Какие, покажет /help.',
  several: (command, choices) =>
    `Команду /${command} знают несколько плагинов. Уточните: ${choices.map(c => `/${c}`).join(' или ')}.`,
  denied: command => `К сожалению, команда /${command} вам недоступна.`,
  linkFirst: command =>
    `Чтобы пользоваться командой /${command}, сначала свяжите этот чат со своей учётной записью: /link`,
  disabled: command => `Команда /${command} сейчас отключена. Попробуйте позже.`,
  failed: command => `Не получилось выполнить команду /${command}. Мы уже знаем об этом; попробуйте позже.`,
  busy: 'Сейчас слишком много запросов. Попробуйте через минуту.',
  filesFailed: 'Не удалось принять файл. Возможно, он слишком большой (не больше 20 МБ). Отправьте его ещё раз.',
  tooManyFiles: (given, max) =>
    `В сообщении ${given} файлов, а можно не больше ${max}. Отправьте их несколькими сообщениями.`,
  welcome: 'Здравствуйте! Что я умею, покажет /help.',
  help: (lines, isLinked) =>
    [
      lines.length === 0 ? 'Для вас здесь пока нет команд.' : `Вам доступны команды:\n${listed(lines)}`,
      isLinked ? '/unlink — отвязать этот чат от учётной записи' : '/link КОД — связать этот чат с учётной записью',
    ].join('\n\n'),
  linked: 'Готово: этот чат связан с вашей учётной записью. Что теперь доступно, покажет /help.',
  wrongCode: 'Код не подошёл: он неверен, уже использован или устарел. Получите новый и отправьте: /link КОД',
  tooManyCodes: 'Слишком много неверных кодов. Попробуйте через 15 минут.',
  linkPrivately:
    'Код связывания отправляйте только в личном чате со мной. Этот код больше не годится, если его кто-то увидел: получите новый.',
  howToLink: 'Войдите на сайте, получите одноразовый код на странице «Мессенджеры» и отправьте его сюда: /link КОД',
  unlinked: 'Этот чат больше не связан с учётной записью.',
  notLinked: 'Этот чат не связан с учётной записью.',
};

const EN: Answers = {
  unknown: command => `There is no command /${command} here. /help shows what there is.`,
  notACommand: 'I understand commands. /help shows which.',
  several: (command, choices) =>
    `Several plugins know /${command}. Please say which: ${choices.map(c => `/${c}`).join(' or ')}.`,
  denied: command => `Sorry, the command /${command} is not available to you.`,
  linkFirst: command => `To use /${command}, please link this chat to your account first: /link`,
  disabled: command => `The command /${command} is switched off at the moment. Please try again later.`,
  failed: command => `The command /${command} did not work. We know about it; please try again later.`,
  busy: 'There is too much going on right now. Please try again in a minute.',
  filesFailed: 'The file could not be taken. It may be too large (20 MB at most). Please send it again.',
  tooManyFiles: (given, max) =>
    `The message has ${given} files; at most ${max} are taken. Please send them in several messages.`,
  welcome: 'Hello! /help shows what I can do.',
  help: (lines, isLinked) =>
    [
      lines.length === 0 ? 'There are no commands for you here yet.' : `Commands you can use:\n${listed(lines)}`,
      isLinked ? '/unlink — unlink this chat from your account' : '/link CODE — link this chat to your account',
    ].join('\n\n'),
  linked: 'Done: this chat is linked to your account. /help shows what you can use now.',
  wrongCode: 'That code did not work: it is wrong, used or too old. Get a new one and send: /link CODE',
  tooManyCodes: 'Too many wrong codes. Please try again in 15 minutes.',
  linkPrivately: 'Please send the code in a private chat with me only. If another person has seen it, get a new one.',
  howToLink: 'Log in on the site, get a one-time code on the page "Messengers", and send it here: /link CODE',
  unlinked: 'This chat is no longer linked to an account.',
  notLinked: 'This chat is not linked to an account.',
};

export const ANSWERS: Record<Language, Answers> = { ru: RU, en: EN };
