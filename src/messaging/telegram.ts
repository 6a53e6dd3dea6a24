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
  parameters: z.object({ retry_after: z.number().optional() }).optional(),
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

/** @param bot our name, when it is known */
function parse(value: unknown, bot: string | null): IncomingMessage | null {
  const parsed = update.safeParse(value);
  if (!parsed.success || parsed.data.message.from.is_bot) return null;
  const { message: m, update_id } = parsed.data;
  const language = m.from.language_code;
  return {
    updateId: String(update_id),
    chatId: String(m.chat.id),
    accountId: String(m.from.id),
    isPrivate: m.chat.type === 'private',
    text: toUs(m.text ?? m.caption ?? '', bot),
    language: language === undefined ? null : /^(ru|uk|be|kk)\b/.test(language) ? 'ru' : 'en',
    files: filesOf(m),
  };
}

/** In groups a command may name the bot it is for: /menu@bot. One that is for another bot is no command here. */
function toUs(text: string, bot: string | null): string {
  const [all, command, name] = /^(\/[^\s@]+)@(\S+)/.exec(text) ?? [];
  if (all === undefined || command === undefined || name === undefined) return text;
  return bot === null || name.toLowerCase() === bot.toLowerCase() ? command + text.slice(all.length) : text.slice(1);
}

export function telegramChannel({ apiUrl, http, perSecond, token }: TelegramOptions): Channel {
  const call = async (method: string, body: object | FormData, signal: AbortSignal) => {
    const isForm = body instanceof FormData;
    const sent = isForm ? body : JSON.stringify(body);
    const got = await callApi(http, `${apiUrl}/bot${token}/${method}`, sent, signal, !isForm);
    const parsed = answer.safeParse(got.json);
    return {
      ...(parsed.success ? parsed.data : { ok: false, result: undefined, description: `status ${got.status}` }),
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
  let bot: string | null = null;
  const learn = async (signal: AbortSignal): Promise<string> => {
    bot ??= (await ask('getMe', {}, z.object({ username: z.string() }), signal)).username;
    return bot;
  };

  return {
    name: 'TELEGRAM',
    perSecond,
    // Groups, whose ids are below zero, take 20 a minute.
    rateOf: chatId => (chatId.startsWith('-') ? { perSecond: 1 / 3, burst: 5 } : { perSecond: 1, burst: 3 }),
    fileBytesMax: FILE_BYTES_MAX,
    sendsOnce: false,
    plainWords: false,
    parse(value) {
      if (bot === null) learn(AbortSignal.timeout(3000)).catch(() => {});
      return parse(value, bot);
    },
    async send(chatId, part, _, signal): Promise<Sent> {
      const got =
        part.kind === 'text'
          ? await call('sendMessage', { chat_id: chatId, text: part.text }, signal)
          : await call(...fileCall(chatId, part), signal);
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

function fileCall(chatId: string, part: Extract<OutgoingPart, { kind: 'file' }>): [method: string, form: FormData] {
  const tooLarge = part.fileType === 'photo' && part.bytes.length > PHOTO_BYTES_MAX;
  const [method, field] = METHOD[tooLarge ? 'document' : part.fileType];
  const form = new FormData();
  form.set('chat_id', chatId);
  if (part.caption !== '') form.set('caption', part.caption);
  form.set(field, new Blob([part.bytes], { type: part.mimeType }), part.name);
  return [method, form];
}
