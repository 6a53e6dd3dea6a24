import type { FileType } from '../files/file-kind.ts';

/** Messengers (docs/messengers.md "Channels"): a row in `app/messengers.ts` and one file each, which knows the messenger's API and nothing else. */
export const CHANNEL_NAMES = ['TELEGRAM', 'VK'] as const;
export type ChannelName = (typeof CHANNEL_NAMES)[number];

export type Language = 'ru' | 'en';

/** A file of a message, before it is taken over. */
export type IncomingFile = {
  fileType: FileType;
  name: string;
  mimeType: string;
  /** As the messenger says; null when it does not. */
  size: number | null;
  /** Where the channel finds it. */
  source: string;
};

/** A message that came in. */
export type IncomingMessage = {
  /** The channel's own; a repeated one is the same message. */
  updateId: string;
  chatId: string;
  /** The sender. */
  accountId: string;
  isPrivate: boolean;
  text: string;
  /** The bot that a command names: /menu@bot. Null when it names none. */
  addressee: string | null;
  /** Messages that a client shows as one, like the pictures of an album, have one name. Null for a message of its own. */
  album: string | null;
  /** Name of the account, when the messenger tells it. */
  language: Language | null;
  files: IncomingFile[];
};

/** What is sent in one call to a messenger. */
export type OutgoingPart =
  | { kind: 'text'; text: string }
  | {
      kind: 'file';
      name: string;
      mimeType: string;
      fileType: FileType;
      bytes: Uint8Array<ArrayBuffer>;
      caption: string;
    };

/** `busy`: the messenger wants us to wait, with this chat or with all; `failed`: it may go another time; `refused`: it never will. */
export type Sent =
  | { kind: 'sent' }
  | { kind: 'busy'; afterMs: number; all: boolean; why: string }
  | { kind: 'failed'; why: string }
  | { kind: 'refused'; why: string };

/** So many in a second on the average, and as many at once as `burst`. */
export type Rate = { perSecond: number; burst: number };

/** An update as it is to be stored. */
export type Update = { updateId: string; chatId: string; isPrivate: boolean; payload: string };

export type Channel = {
  readonly name: ChannelName;
  /** Messages a second, all chats together. */
  readonly perSecond: number;
  rateOf(chatId: string): Rate;
  /** Largest file it takes, and gives. */
  readonly fileBytesMax: number;
  /** Whether a part that is sent again under its number appears once. */
  readonly sendsOnce: boolean;
  /** Commands begin with a slash; where that is no custom, in a private chat any first word may be one. */
  readonly plainWords: boolean;
  /** Whether a name in a command is ours. @throws Error when the messenger does not tell our name now */
  isUs(name: string, signal: AbortSignal): Promise<boolean>;
  /** Asks the messenger who we are. @throws Error when it does not answer, or refuses our token */
  check(signal: AbortSignal): Promise<void>;
  /** @returns null for what is no message of a person */
  parse(update: unknown): IncomingMessage | null;
  /** @param number names the part: the same for every attempt */
  send(chatId: string, part: OutgoingPart, number: number, signal: AbortSignal): Promise<Sent>;
  /** @throws Error when it cannot be fetched, or is larger than `fileBytesMax` */
  download(file: IncomingFile, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>>;
  /** An address that opens a chat with us and brings the code; null when there is none. */
  linkOf(code: string, signal: AbortSignal): Promise<string | null>;
  /**
   * Asks for updates until the signal, for development without an address of our own. Each is taken before the next ones are asked for.
   */
  poll(take: (update: unknown) => Promise<void>, failed: (error: unknown) => void, signal: AbortSignal): Promise<void>;
};
