import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { FileType } from '../files/file-kind.ts';
import type { Channel, IncomingFile, IncomingMessage, OutgoingPart, Sent } from './channel.ts';
import { callApi, fetchBytes, type MessengerHttp } from './messenger-http.ts';

/** Telegram (https://core.telegram.org/bots/api): a bot of the installation. */
export type TelegramOptions = { apiUrl: string; token: string; perSecond: number; http: MessengerHttp };

const POLL_SECONDS = 25;
const POLL_AGAIN_MS = 3000;
/** `getFile` gives no larger ones; larger ones may be sent, but what comes in and goes out has one bound. */
const FILE_BYTES_MAX = 20 * 1024 * 1024;
/** After so many, groups are asked for their new ids again. */
const MOVED_MAX = 1000;
/** A larger picture goes as a document. */
const PHOTO_BYTES_MAX = 10 * 1024 * 1024;

const id = z.int();
const media = z.object({
  file_id: z.string(),
  file_name: z.string().optional(),
  mime_type: z.string().optional(),
  file_size: z.int().optional(),
});
type Media = z.infer<typeof media>;

const update = z.object({
  update_id: id,
  message: z.object({
    chat: z.object({ id, type: z.string() }),
    from: z.object({ id, is_bot: z.boolean().default(false), language_code: z.string().optional() }),
    // Administrators who stay unnamed, and channels of people, speak as a chat; `from` is a bot of Telegram's then.
    sender_chat: z.object({ id }).optional(),
    // What a channel has posted, and Telegram repeats in its group.
    is_automatic_forward: z.boolean().optional(),
    is_topic_message: z.boolean().optional(),
    message_thread_id: id.optional(),
    media_group_id: z.string().optional(),
    text: z.string().optional(),
    caption: z.string().optional(),
    photo: z.array(media).optional(),
    document: media.optional(),
    audio: media.optional(),
    video: media.optional(),
    voice: media.optional(),
    sticker: media.extend({ is_animated: z.boolean().optional(), is_video: z.boolean().optional() }).optional(),
  }),
});

const answer = z.object({
  ok: z.boolean(),
  result: z.unknown().optional(),
  error_code: z.int().optional(),
  description: z.string().default(''),
  parameters: z.object({ retry_after: z.number().optional(), migrate_to_chat_id: id.optional() }).optional(),
});

const METHOD: Record<FileType, [method: string, field: string]> = {
  photo: ['sendPhoto', 'photo'],
  document: ['sendDocument', 'document'],
  audio: ['sendAudio', 'audio'],
  video: ['sendVideo', 'video'],
  voice: ['sendVoice', 'voice'],
  sticker: ['sendSticker', 'sticker'],
};

const taken = (m: Media, fileType: FileType, name: string, mimeType: string): IncomingFile => ({
  fileType,
  name: m.file_name ?? name,
  mimeType: m.mime_type ?? mimeType,
  size: m.file_size ?? null,
  source: m.file_id,
});

type Message = z.infer<typeof update>['message'];

function filesOf(m: Message): IncomingFile[] {
  const files: IncomingFile[] = [];
  // The same picture in several sizes, the largest one last.
  const photo = m.photo?.at(-1);
  if (photo !== undefined) files.push(taken(photo, 'photo', 'photo.jpg', 'image/jpeg'));
  if (m.document !== undefined) files.push(taken(m.document, 'document', 'document', 'application/octet-stream'));
  if (m.audio !== undefined) files.push(taken(m.audio, 'audio', 'audio.mp3', 'audio/mpeg'));
  if (m.video !== undefined) files.push(taken(m.video, 'video', 'video.mp4', 'video/mp4'));
  if (m.voice !== undefined) files.push(taken(m.voice, 'voice', 'voice.ogg', 'audio/ogg'));
  if (m.sticker !== undefined) {
    const { is_animated, is_video } = m.sticker;
    const [name, type] = is_animated
      ? ['sticker.tgs', 'application/x-tgsticker']
      : is_video
        ? ['sticker.webm', 'video/webm']
        : ['sticker.webp', 'image/webp'];
    files.push(taken(m.sticker, 'sticker', name ?? '', type ?? ''));
  }
  return files;
}

function parse(value: unknown): IncomingMessage | null {
  const parsed = update.safeParse(value);
  if (!parsed.success) return null;
  const { message: m, update_id } = parsed.data;
  if (m.is_automatic_forward === true || (m.from.is_bot && m.sender_chat === undefined)) return null;
  const language = m.from.language_code;
  return {
    updateId: String(update_id),
    chatId: chatIdOf(m),
    accountId: String(m.sender_chat?.id ?? m.from.id),
    isPrivate: m.chat.type === 'private',
    ...addressed(m.text ?? m.caption ?? ''),
    album: m.media_group_id ?? null,
    language: language === undefined ? null : /^(ru|uk|be|kk)\b/.test(language) ? 'ru' : 'en',
    files: filesOf(m),
  };
}

/**
 * A topic of a forum is a chat of its own here, `GROUP:TOPIC`, so that answers go where they were asked. Threads of other groups are
 * those of answers to one message, and cannot be sent to.
 */
function chatIdOf({ chat, is_topic_message, message_thread_id }: Message): string {
  return is_topic_message === true && message_thread_id !== undefined
    ? `${chat.id}:${message_thread_id}`
    : String(chat.id);
}

/** In groups a command may name the bot it is for: /menu@bot. */
function addressed(text: string): { text: string; addressee: string | null } {
  const [all, command, name] = /^(\/[^\s@]+)@(\S+)/.exec(text) ?? [];
  if (all === undefined || command === undefined || name === undefined) return { text, addressee: null };
  return { text: command + text.slice(all.length), addressee: name };
}

export function telegramChannel({ apiUrl, http, perSecond, token }: TelegramOptions): Channel {
  const call = async (method: string, body: object | FormData, signal: AbortSignal) => {
    const isForm = body instanceof FormData;
    const sent = isForm ? body : JSON.stringify(body);
    const got = await callApi(http, `${apiUrl}/bot${token}/${method}`, sent, signal, !isForm);
    const parsed = answer.safeParse(got.json);
    return {
      ...(parsed.success
        ? parsed.data
        : { ok: false, result: undefined, parameters: undefined, description: `status ${got.status}` }),
      status: got.status,
      retryAfterMs: parsed.success
        ? (parsed.data.parameters?.retry_after ?? 0) * 1000 || got.retryAfterMs
        : got.retryAfterMs,
    };
  };
  /** @throws Error when it does not succeed */
  const ask = async <T>(method: string, body: object, result: z.ZodType<T>, signal: AbortSignal): Promise<T> => {
    const got = await call(method, body, signal);
    if (!got.ok) throw new Error(`Telegram refused ${method}: ${got.description}`);
    return result.parse(got.result);
  };
  const ownName = async (signal: AbortSignal): Promise<string> =>
    (await ask('getMe', {}, z.object({ username: z.string() }), signal)).username;
  let bot: string | null = null;
  const learn = async (signal: AbortSignal): Promise<string> => {
    bot ??= await ownName(signal);
    return bot;
  };

  /** New ids of groups that have become supergroups; what is sent to the old one goes there. */
  const moved = new Map<string, string>();

  const sendTo = async (chatId: string, part: OutgoingPart, signal: AbortSignal) => {
    const [group = '', topic] = chatId.split(':');
    const place = {
      chat_id: moved.get(group) ?? group,
      ...(topic === undefined ? {} : { message_thread_id: Number(topic) }),
    };
    if (part.kind === 'text') return await call('sendMessage', { ...place, text: part.text }, signal);
    const isDocument =
      part.fileType === 'document' || (part.fileType === 'photo' && part.bytes.length > PHOTO_BYTES_MAX);
    const got = await call(...fileCall(place, part, isDocument ? 'document' : part.fileType), signal);
    if (isDocument || got.status !== 400 || got.parameters?.migrate_to_chat_id !== undefined) return got;
    // Telegram does not take it in this form, for its dimensions, its format or the settings of the user: as a document it arrives.
    const again = await call(...fileCall(place, part, 'document'), signal);
    return again.ok || again.status !== 400 ? again : got;
  };

  return {
    name: 'TELEGRAM',
    perSecond,
    // Groups, whose ids are below zero, take 20 a minute.
    rateOf: chatId => (chatId.startsWith('-') ? { perSecond: 1 / 3, burst: 5 } : { perSecond: 1, burst: 3 }),
    fileBytesMax: FILE_BYTES_MAX,
    sendsOnce: false,
    plainWords: false,
    isUs: async (name, signal) => name.toLowerCase() === (await learn(signal)).toLowerCase(),
    async check(signal) {
      await ownName(signal);
    },
    parse,
    async send(chatId, part, _, signal): Promise<Sent> {
      let got = await sendTo(chatId, part, signal);
      const newId = got.parameters?.migrate_to_chat_id;
      if (!got.ok && newId !== undefined) {
        if (moved.size >= MOVED_MAX) moved.clear();
        moved.set(chatId.split(':')[0] ?? '', String(newId));
        got = await sendTo(chatId, part, signal);
      }
      if (got.ok) return { kind: 'sent' };
      const why = `Telegram: ${got.description}`;
      if (got.status === 429) return { kind: 'busy', afterMs: got.retryAfterMs ?? 1000, all: false, why };
      // A wrong token is the operator's to mend; what was written is kept meanwhile.
      if (got.status === 401 || got.status === 404 || got.status >= 500) return { kind: 'failed', why };
      return { kind: 'refused', why };
    },
    async download(file, signal) {
      if (file.size !== null && file.size > FILE_BYTES_MAX) throw new Error(`${file.size} bytes are too many`);
      const { file_path } = await ask('getFile', { file_id: file.source }, z.object({ file_path: z.string() }), signal);
      const where = file_path.split('/').map(encodeURIComponent).join('/');
      return await fetchBytes(http, `${apiUrl}/file/bot${token}/${where}`, FILE_BYTES_MAX, signal);
    },
    async linkOf(code, signal) {
      return `https://t.me/${encodeURIComponent(await learn(signal))}?start=${code}`;
    },
    async poll(take, failed, signal) {
      let offset = 0;
      while (!signal.aborted) {
        try {
          const late = AbortSignal.any([signal, AbortSignal.timeout((POLL_SECONDS + 10) * 1000)]);
          const order = { offset, timeout: POLL_SECONDS, allowed_updates: ['message'] };
          for (const one of await ask('getUpdates', order, z.array(z.looseObject({ update_id: id })), late)) {
            await take(one);
            offset = one.update_id + 1;
          }
        } catch (error) {
          if (signal.aborted) return;
          failed(error);
          await sleep(POLL_AGAIN_MS, undefined, { signal }).catch(() => {});
        }
      }
    },
  };
}

function fileCall(
  place: Readonly<Record<string, string | number>>,
  part: Extract<OutgoingPart, { kind: 'file' }>,
  fileType: FileType,
): [method: string, form: FormData] {
  const [method, field] = METHOD[fileType];
  const form = new FormData();
  for (const [name, value] of Object.entries(place)) form.set(name, String(value));
  if (part.caption !== '') form.set('caption', part.caption);
  form.set(field, new Blob([part.bytes], { type: part.mimeType }), part.name);
  return [method, form];
}
