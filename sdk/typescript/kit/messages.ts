import { type FileRef, fileRefOf, wireRefOf } from './files.ts';

/** A message to be sent: a text, files, or both; made by `NewMessage`. */
export class Message {
  readonly text: string;
  readonly files: Array<{ file: ReturnType<typeof wireRefOf>; caption?: string }> = [];

  constructor(text: string) {
    this.text = text;
  }
  /** Attaches a file; may be called several times. */
  File(file: FileRef, caption = ''): this {
    this.files.push({ file: wireRefOf(file), ...(caption === '' ? {} : { caption }) });
    return this;
  }
}

/**
 * A message; the text may be empty when files are attached.
 *
 * @example ctx.Reply(NewMessage('The menu of today').File(menu, 'Menu'))
 */
export const NewMessage = (text: string): Message => new Message(text);

/** A message with a command, as it came in. */
export class IncomingMessage {
  readonly Channel: string;
  readonly ChatID: string;
  /** The user who has linked the account; null for an account that is not linked. */
  readonly UserID: bigint | null;
  /** All of the text, with the command. */
  readonly Text: string;
  /** The words behind the command. */
  readonly Args: string[];
  readonly Files: FileRef[];

  constructor(event: {
    channel: string;
    chat_id: string;
    user_id: number | bigint | null;
    text: string;
    args: string[];
    files: Array<Parameters<typeof fileRefOf>[0]>;
  }) {
    this.Channel = event.channel;
    this.ChatID = event.chat_id;
    this.UserID = event.user_id === null ? null : BigInt(event.user_id);
    this.Text = event.text;
    this.Args = event.args;
    this.Files = event.files.map(fileRefOf);
  }
}

/** Attributes of students a filter may ask for. */
export type StudentAttribute = 'nationality_type' | 'funding_type' | 'education_form' | 'locale' | 'primary_channel';

/** Which students a message is for; what is not named does not matter. Made by `Students`. */
export class StudentFilter {
  #order: Record<string, unknown> = {};
  /** Of these streams, by their external ids. */
  Streams(...ids: string[]): this {
    this.#order.streams = ids;
    return this;
  }
  /** Of these study groups. */
  Groups(...ids: string[]): this {
    this.#order.groups = ids;
    return this;
  }
  /** Of these subgroups. */
  Subgroups(...ids: string[]): this {
    this.#order.subgroups = ids;
    return this;
  }
  /** Only those who have one of the values. */
  Where(attribute: StudentAttribute, ...values: string[]): this {
    this.#order[attribute] = values;
    return this;
  }
  /** Every student. */
  All(): this {
    this.#order.all = true;
    return this;
  }
  toJSON(): object {
    return this.#order;
  }
}

/** @example ctx.NotifyStudents(Students().Groups('ИВТ-21').Where('locale', 'ru'), NewMessage('...')) */
export const Students = (): StudentFilter => new StudentFilter();
