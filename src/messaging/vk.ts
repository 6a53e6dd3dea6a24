import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { parseBoundedJson } from '../base/bounded-json.ts';
import type { Channel, IncomingFile, IncomingMessage, OutgoingPart, Sent } from './channel.ts';
import { callApi, type MessengerHttp } from './messenger-http.ts';

/** VK (https://dev.vk.com/ru/api/bots/overview): a community of the installation. */
export type VkOptions = {
  apiUrl: string;
  token: string;
  groupId: string;
  perSecond: number;
  http: MessengerHttp;
};

const VERSION = '5.199';
const POLL_SECONDS = 25;
const POLL_AGAIN_MS = 3000;
const FILE_BYTES_MAX = 20 * 1024 * 1024;
/** Peers above are chats of several. */
const GROUP_CHATS_FROM = 2_000_000_000;

const picture = z.object({ url: z.string(), width: z.number().default(0) });
const attachment = z.object({
  type: z.string(),
  photo: z.object({ sizes: z.array(picture) }).optional(),
  doc: z.object({ title: z.string().default('document'), size: z.int().optional(), url: z.string() }).optional(),
  audio: z.object({ url: z.string(), title: z.string().default('audio') }).optional(),
  audio_message: z.object({ link_ogg: z.string() }).optional(),
  sticker: z.object({ images: z.array(picture) }).optional(),
});
const update = z.object({
  type: z.literal('message_new'),
  event_id: z.string().regex(/^[\x21-\x7e]{1,200}$/),
  object: z.object({
    message: z.object({
      from_id: z.int(),
      peer_id: z.int(),
      text: z.string().default(''),
      payload: z.string().optional(),
      attachments: z.array(z.unknown()).default([]),
    }),
  }),
});

/** Errors of the API (https://dev.vk.com/ru/reference/errors) that say when to come again. */
const BUSY_MS: Record<number, number> = { 6: 1000, 9: 5000, 29: 60_000 };
/** Flood control, which is about one chat. */
const FLOOD = 9;
/** A wrong token or permission is the operator's to mend; 1 and 10 are faults of the server. */
const PASSING: ReadonlySet<number> = new Set([1, 5, 10, 27]);

const answer = z.union([
  z.object({ error: z.object({ error_code: z.int(), error_msg: z.string().default('') }) }),
  z.object({ response: z.unknown() }),
]);

const largest = (all: ReadonlyArray<z.infer<typeof picture>>): string | undefined =>
  [...all].sort((a, b) => b.width - a.width)[0]?.url;

function fileOf(value: unknown): IncomingFile[] {
  const parsed = attachment.safeParse(value);
  if (!parsed.success) return [];
  const a = parsed.data;
  const file = (source: string | undefined, rest: Omit<IncomingFile, 'source' | 'size'>, size: number | null = null) =>
    source === undefined ? [] : [{ ...rest, source, size }];
  if (a.photo !== undefined)
    return file(largest(a.photo.sizes), { fileType: 'photo', name: 'photo.jpg', mimeType: 'image/jpeg' });
  if (a.doc !== undefined)
    return file(
      a.doc.url,
      { fileType: 'document', name: a.doc.title, mimeType: 'application/octet-stream' },
      a.doc.size ?? null,
    );
  if (a.audio !== undefined)
    return file(a.audio.url, { fileType: 'audio', name: `${a.audio.title}.mp3`, mimeType: 'audio/mpeg' });
  if (a.audio_message !== undefined)
    return file(a.audio_message.link_ogg, { fileType: 'voice', name: 'voice.ogg', mimeType: 'audio/ogg' });
  if (a.sticker !== undefined)
    return file(largest(a.sticker.images), { fileType: 'sticker', name: 'sticker.png', mimeType: 'image/png' });
  return [];
}

/** A button's payload names the command it stands for. */
function commandOf(payload: string | undefined): string | null {
  if (payload === undefined) return null;
  try {
    const value: unknown = parseBoundedJson(payload);
    if (typeof value === 'object' && value !== null && 'command' in value && typeof value.command === 'string')
      return `/${value.command.replace(/^\//, '')}`;
  } catch {
    // The button of another application.
  }
  return null;
}

function parse(value: unknown): IncomingMessage | null {
  const parsed = update.safeParse(value);
  if (!parsed.success) return null;
  const { event_id, object } = parsed.data;
  const m = object.message;
  // Communities have numbers below zero: our own messages among them.
  if (m.from_id <= 0) return null;
  return {
    updateId: event_id,
    chatId: String(m.peer_id),
    accountId: String(m.from_id),
    isPrivate: m.peer_id < GROUP_CHATS_FROM,
    // In chats of several a message to us begins with our name: [club1|@us] /menu.
    text: commandOf(m.payload) ?? m.text.replace(/^\[club\d+\|[^\]]*\][\s,]*/, ''),
    addressee: null,
    album: null,
    language: null,
    files: m.attachments.flatMap(fileOf),
  };
}

/** A request that VK refused. */
class VkError extends Error {
  readonly sent: Sent;
  constructor(method: string, code: number, text: string) {
    const why = `VK refused ${method}: ${code} ${text}`;
    super(why);
    const afterMs = BUSY_MS[code];
    this.sent =
      afterMs !== undefined
        ? { kind: 'busy', afterMs, all: code !== FLOOD, why }
        : { kind: PASSING.has(code) ? 'failed' : 'refused', why };
  }
}

class VkBusy extends Error {
  readonly afterMs: number;
  constructor(afterMs: number) {
    super('VK: too many requests');
    this.afterMs = afterMs;
  }
}

export function vkChannel({ apiUrl, groupId, http, perSecond, token }: VkOptions): Channel {
  /** @throws VkError, VkBusy, Error when there is no answer */
  const ask = async <T>(
    method: string,
    given: Record<string, string>,
    result: z.ZodType<T>,
    signal: AbortSignal,
  ): Promise<T> => {
    const body = new URLSearchParams({ ...given, access_token: token, v: VERSION });
    const got = await callApi(http, `${apiUrl}/method/${method}`, body, signal);
    if (got.status === 429) throw new VkBusy(got.retryAfterMs ?? 1000);
    const parsed = answer.safeParse(got.json);
    if (!parsed.success) throw new Error(`VK answered status ${got.status} to ${method}`);
    if ('error' in parsed.data) throw new VkError(method, parsed.data.error.error_code, parsed.data.error.error_msg);
    return result.parse(parsed.data.response);
  };

  /** An address VK has named for what we send or ask. @throws Error when it is not encrypted */
  const named = (address: string, what: string): string => {
    const url = new URL(address);
    if (url.protocol !== 'https:' && url.origin !== new URL(apiUrl).origin)
      throw new Error(`VK named ${what} that is not encrypted`);
    return url.href;
  };

  /** Sends a file where VK says. */
  const uploadTo = async <T>(
    address: string,
    field: string,
    part: FilePart,
    result: z.ZodType<T>,
    signal: AbortSignal,
  ) => {
    const form = new FormData();
    form.set(field, new Blob([part.bytes], { type: part.mimeType }), part.name);
    const got = await callApi(http, named(address, 'an upload address'), form, signal);
    return result.parse(got.json);
  };

  const server = z.object({ upload_url: z.string() });
  const owned = z.object({ id: z.int(), owner_id: z.int(), access_key: z.string().optional() });
  const attachmentOf = (kind: string, o: z.infer<typeof owned>): string =>
    `${kind}${o.owner_id}_${o.id}${o.access_key === undefined ? '' : `_${o.access_key}`}`;

  const attachPhoto = async (peer: string, part: FilePart, signal: AbortSignal): Promise<string> => {
    const { upload_url } = await ask('photos.getMessagesUploadServer', { peer_id: peer }, server, signal);
    const shape = z.object({ server: z.coerce.string(), photo: z.string(), hash: z.string() });
    const uploaded = await uploadTo(upload_url, 'photo', part, shape, signal);
    const [photo] = await ask('photos.saveMessagesPhoto', uploaded, z.array(owned).min(1), signal);
    if (photo === undefined) throw new Error('VK has not saved the picture');
    return attachmentOf('photo', photo);
  };

  /** Uploads a file and names it as an attachment. */
  const attach = async (peer: string, part: FilePart, signal: AbortSignal): Promise<string> => {
    if (part.fileType === 'photo')
      try {
        return await attachPhoto(peer, part, signal);
      } catch (error) {
        // VK does not take it as a picture, for its dimensions or its format: as a document it arrives.
        const isRefused = error instanceof z.ZodError || (error instanceof VkError && error.sent.kind === 'refused');
        if (!isRefused) throw error;
      }
    const type = part.fileType === 'voice' ? 'audio_message' : 'doc';
    const { upload_url } = await ask('docs.getMessagesUploadServer', { peer_id: peer, type }, server, signal);
    const { file } = await uploadTo(upload_url, 'file', part, z.object({ file: z.string() }), signal);
    const shape = z.object({ doc: owned.optional(), audio_message: owned.optional() });
    const saved = await ask('docs.save', { file, title: part.name }, shape, signal);
    const doc = saved.doc ?? saved.audio_message;
    if (doc === undefined) throw new Error('VK has not saved the file');
    return attachmentOf('doc', doc);
  };

  return {
    name: 'VK',
    perSecond,
    rateOf: () => ({ perSecond: 3, burst: 5 }),
    fileBytesMax: FILE_BYTES_MAX,
    sendsOnce: true,
    plainWords: true,
    isUs: () => Promise.resolve(true),
    async check(signal) {
      await ask('groups.getById', groupId === '' ? {} : { group_id: groupId }, z.unknown(), signal);
    },
    parse,
    async send(chatId, part, number, signal) {
      try {
        const message = part.kind === 'file' ? part.caption : part.text;
        const order: Record<string, string> = { peer_id: chatId, message, random_id: String(number) };
        if (part.kind === 'file') order.attachment = await attach(chatId, part, signal);
        await ask('messages.send', order, z.unknown(), signal);
        return { kind: 'sent' };
      } catch (error) {
        if (error instanceof VkBusy) return { kind: 'busy', afterMs: error.afterMs, all: true, why: error.message };
        if (error instanceof VkError) return error.sent;
        throw error;
      }
    },
    download: (file, signal) => http.download(file.source, FILE_BYTES_MAX, signal),
    linkOf: () => Promise.resolve(groupId === '' ? null : `https://vk.me/club${groupId}`),
    async poll(take, failed, signal) {
      const place = z.object({ key: z.string(), server: z.string(), ts: z.coerce.string() });
      const page = z.object({
        ts: z.coerce.string().optional(),
        updates: z.array(z.unknown()).default([]),
        failed: z.int().optional(),
      });
      let at: z.infer<typeof place> | null = null;
      let isKeyOld = false;
      while (!signal.aborted) {
        try {
          const late = AbortSignal.any([signal, AbortSignal.timeout((POLL_SECONDS + 10) * 1000)]);
          if (at === null || isKeyOld) {
            const fresh = await ask('groups.getLongPollServer', { group_id: groupId }, place, late);
            // Where we are in the history stays, or what came meanwhile would be lost.
            at = at === null ? fresh : { ...fresh, ts: at.ts };
            isKeyOld = false;
          }
          const query = new URLSearchParams({ act: 'a_check', key: at.key, ts: at.ts, wait: String(POLL_SECONDS) });
          const got = page.parse(
            (await callApi(http, `${named(at.server, 'a server for updates')}?${query}`, null, late)).json,
          );
          for (const one of got.updates) await take(one);
          // 1: the history has moved on; 2: the key is old; 3: so is the history.
          if (got.failed === 2) isKeyOld = true;
          else at = got.failed === 3 ? null : { ...at, ts: got.ts ?? at.ts };
        } catch (error) {
          if (signal.aborted) return;
          failed(error);
          isKeyOld = true;
          await sleep(POLL_AGAIN_MS, undefined, { signal }).catch(() => {});
        }
      }
    },
  };
}

type FilePart = Extract<OutgoingPart, { kind: 'file' }>;
