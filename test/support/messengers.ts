import http from 'node:http';
import { listenFor } from './listen.ts';
import { type Answer, type Json, request } from './service.ts';
import { watPlugin } from './wat.ts';

type Teardown = { teardown(fn: () => unknown): void };

/** A message that has arrived at a messenger. */
export type Shown = {
  chat: string;
  text: string;
  /** Of the method that sent it. */
  kind: string;
  file: { name: string; type: string; text: string } | null;
  /** Of a forum, at Telegram. */
  topic?: string;
  at: number;
};

/** What a call is answered with instead of what it should be. */
export type Fault = { status: number; body: Json; headers?: Record<string, string> } | 'reset' | 'shown_then_reset';

export const TELEGRAM_TOKEN = '123456:test-token-of-the-bot-0123456789';
export const TELEGRAM_SECRET = 'secret-of-the-telegram-hook';
export const VK_TOKEN = 'vk1.a.test-token';
export const VK_SECRET = 'secretOfVk';
export const VK_GROUP = '4242';

/** What both servers share: a queue of faults, what has arrived, how often they were asked. */
class Messenger {
  readonly shown: Shown[] = [];
  readonly calls: string[] = [];
  readonly faults: Fault[] = [];
  /** Messages a second that are taken. */
  perSecond = 1000;
  /** Files that can be fetched, by their ids or names. */
  readonly files = new Map<string, { type: string; bytes: Buffer }>();
  base = '';
  /** Called before a message is shown; the answer waits for it. */
  before: (shown: Shown) => Promise<void> = () => Promise.resolve();
  readonly #waiting: Array<() => void> = [];

  /** Whether the last second has had its share. */
  isFull(): boolean {
    const since = performance.now() - 1000;
    return this.shown.filter(s => s.at > since).length >= this.perSecond;
  }

  show(shown: Omit<Shown, 'at'>): void {
    this.shown.push({ ...shown, at: performance.now() });
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Waits until so many messages have arrived. */
  async until(count: number, ms = 20_000): Promise<Shown[]> {
    const end = performance.now() + ms;
    while (this.shown.length < count && performance.now() < end)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, 200);
        this.#waiting.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    if (this.shown.length < count)
      throw new Error(`${this.shown.length} of ${count} messages have arrived: ${JSON.stringify(this.shown)}`);
    return this.shown;
  }
}

async function formOf(request: http.IncomingMessage, body: Buffer): Promise<FormData> {
  return await new Response(new Uint8Array(body), {
    headers: { 'content-type': request.headers['content-type'] ?? '' },
  }).formData();
}

async function fileOf(value: unknown): Promise<Shown['file']> {
  if (!(value instanceof File)) return null;
  return { name: value.name, type: value.type, text: await value.text() };
}

async function serve(
  t: Teardown,
  messenger: Messenger,
  answer: (
    request: http.IncomingMessage,
    url: URL,
    body: Buffer,
  ) => Promise<{ status?: number; body: unknown; type?: string }>,
): Promise<void> {
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (c: Buffer) => chunks.push(c));
    request.on('error', () => {});
    request.on('end', async () => {
      const url = new URL(request.url ?? '/', 'http://messenger');
      try {
        const fault = /getMe|getById|getUpdates|a_check|LongPoll/.test(url.href) ? undefined : messenger.faults.shift();
        if (fault === 'reset') return void request.socket.destroy();
        if (fault !== undefined && fault !== 'shown_then_reset') {
          messenger.calls.push(`fault ${fault.status}`);
          response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
          return void response.end(JSON.stringify(fault.body));
        }
        const { body, status = 200, type = 'application/json' } = await answer(request, url, Buffer.concat(chunks));
        if (fault === 'shown_then_reset') return void request.socket.destroy();
        response.writeHead(status, { 'content-type': type });
        response.end(Buffer.isBuffer(body) ? body : JSON.stringify(body));
      } catch (error) {
        response.writeHead(500).end(String(error));
      }
    });
  });
  messenger.base = await listenFor(t, server);
}

/** A server that speaks the Bot API of Telegram as far as bots like ours use it (https://core.telegram.org/bots/api). */
export class FakeTelegram extends Messenger {
  /** What `getUpdates` gives. */
  readonly updates: Json[] = [];
  /** Why a method is refused for a chat, with the parameters of the refusal; null when it is not. */
  refuses: (method: string, chat: string) => { description: string; parameters?: Json } | null = () => null;
  /** Until it resolves no client learns the name of the bot; it may reject. */
  named: Promise<void> = Promise.resolve();

  env(): Record<string, string> {
    return {
      BOT_MESSENGERS_TELEGRAM_TOKEN: TELEGRAM_TOKEN,
      BOT_MESSENGERS_TELEGRAM_SECRET: TELEGRAM_SECRET,
      BOT_MESSENGERS_TELEGRAM_API_URL: this.base,
    };
  }
}

export async function startTelegram(t: Teardown): Promise<FakeTelegram> {
  const telegram = new FakeTelegram();
  const refused = (code: number, description: string, more: Json = {}) => ({
    status: code,
    body: { ok: false, error_code: code, description, ...more },
  });
  await serve(t, telegram, async (request, url, body) => {
    const [, file, token, rest = ''] = /^(\/file)?\/bot([^/]+)\/(.+)$/.exec(url.pathname) ?? [];
    if (token !== TELEGRAM_TOKEN) return refused(401, 'Unauthorized');
    if (file !== undefined) {
      const found = telegram.files.get(decodeURIComponent(rest.replace('files/', '')));
      return found === undefined ? refused(404, 'Not Found') : { body: found.bytes, type: found.type };
    }
    telegram.calls.push(rest);
    const isForm = /multipart/.test(request.headers['content-type'] ?? '');
    const form = isForm ? await formOf(request, body) : null;
    const given: Json = form === null ? JSON.parse(body.toString()) : {};
    const field = (name: string): string => String(form?.get(name) ?? given[name] ?? '');
    if (rest === 'getMe')
      try {
        await telegram.named;
      } catch {
        return refused(502, 'Bad Gateway');
      }
    if (rest === 'getMe') return { body: { ok: true, result: { id: 1, is_bot: true, username: 'university_bot' } } };
    if (rest === 'getFile')
      return telegram.files.has(field('file_id'))
        ? { body: { ok: true, result: { file_id: field('file_id'), file_path: `files/${field('file_id')}` } } }
        : refused(400, 'Bad Request: wrong file_id');
    if (rest === 'getUpdates') {
      const offset = Number(field('offset'));
      for (let k = 0; k < 20; k++) {
        const due = telegram.updates.filter(u => Number(u.update_id) >= offset);
        if (due.length > 0) return { body: { ok: true, result: due } };
        await new Promise(r => setTimeout(r, 50));
      }
      return { body: { ok: true, result: [] } };
    }
    if (!/^send(Message|Photo|Document|Audio|Video|Voice|Sticker)$/.test(rest)) return refused(404, 'Not Found');
    const chat = field('chat_id');
    const why = telegram.refuses(rest, chat);
    if (why !== null)
      return refused(
        400,
        `Bad Request: ${why.description}`,
        why.parameters === undefined ? {} : { parameters: why.parameters },
      );
    if (chat === '403') return refused(403, 'Forbidden: bot was blocked by the user');
    const text = rest === 'sendMessage' ? field('text') : field('caption');
    if (text.length > (rest === 'sendMessage' ? 4096 : 1024)) return refused(400, 'Bad Request: message is too long');
    if (rest === 'sendMessage' && text.trim() === '') return refused(400, 'Bad Request: message text is empty');
    if (telegram.isFull()) return refused(429, 'Too Many Requests: retry after 1', { parameters: { retry_after: 1 } });
    const attached = await fileOf(form?.get(rest.slice(4).toLowerCase()) ?? null);
    const topic = field('message_thread_id');
    const sent = { chat, text, kind: rest, file: attached, ...(topic === '' ? {} : { topic }) };
    await telegram.before({ ...sent, at: 0 });
    telegram.show(sent);
    return { body: { ok: true, result: { message_id: telegram.shown.length } } };
  });
  return telegram;
}

/** The same of VK (https://dev.vk.com/ru/api). */
export class FakeVk extends Messenger {
  readonly updates: Json[] = [];
  readonly randomIds = new Map<string, number>();
  /** Whether pictures are refused for what they are. */
  refusesPhotos = false;

  env(): Record<string, string> {
    return {
      BOT_MESSENGERS_VK_TOKEN: VK_TOKEN,
      BOT_MESSENGERS_VK_SECRET: VK_SECRET,
      BOT_MESSENGERS_VK_GROUP_ID: VK_GROUP,
      BOT_MESSENGERS_VK_CONFIRMATION: 'c0nf1rm',
      BOT_MESSENGERS_VK_API_URL: this.base,
    };
  }
}

export async function startVk(t: Teardown): Promise<FakeVk> {
  const vk = new FakeVk();
  const uploads = new Map<string, Shown['file']>();
  const error = (code: number, text: string) => ({ body: { error: { error_code: code, error_msg: text } } });
  await serve(t, vk, async (request, url, body) => {
    if (url.pathname.startsWith('/attached/')) {
      const found = vk.files.get(decodeURIComponent(url.pathname.slice(10)));
      return found === undefined ? { status: 404, body: {} } : { body: found.bytes, type: found.type };
    }
    if (url.pathname === '/upload') {
      const form = await formOf(request, body);
      const key = `u${uploads.size}`;
      const photo = form.get('photo');
      uploads.set(key, await fileOf(photo ?? form.get('file')));
      return photo === null ? { body: { file: key } } : { body: { server: 7, photo: key, hash: 'h' } };
    }
    if (url.pathname === '/longpoll') {
      const ts = Number(url.searchParams.get('ts'));
      for (let k = 0; k < 20 && vk.updates.length <= ts; k++) await new Promise(r => setTimeout(r, 50));
      return { body: { ts: String(vk.updates.length), updates: vk.updates.slice(ts) } };
    }
    const method = url.pathname.replace('/method/', '');
    vk.calls.push(method);
    const given = new URLSearchParams(body.toString());
    if (given.get('access_token') !== VK_TOKEN) return error(5, 'User authorization failed');
    if (given.get('v') === null) return error(8, 'v (version) is required');
    switch (method) {
      case 'photos.getMessagesUploadServer':
      case 'docs.getMessagesUploadServer':
        return { body: { response: { upload_url: `${vk.base}/upload` } } };
      case 'photos.saveMessagesPhoto':
        if (vk.refusesPhotos) return error(129, 'Invalid photo');
        return { body: { response: [{ id: Number(given.get('photo')?.slice(1)), owner_id: -1, access_key: 'k' }] } };
      case 'docs.save':
        return { body: { response: { type: 'doc', doc: { id: Number(given.get('file')?.slice(1)), owner_id: -2 } } } };
      case 'groups.getById':
        return { body: { response: { groups: [{ id: Number(given.get('group_id')) }] } } };
      case 'groups.getLongPollServer':
        return { body: { response: { key: 'k', server: `${vk.base}/longpoll`, ts: '0' } } };
      case 'messages.send':
        break;
      default:
        return error(3, 'Unknown method passed');
    }
    const chat = given.get('peer_id') ?? '';
    if (chat === '901') return error(901, "Can't send messages for users without permission");
    const once = `${chat} ${given.get('random_id')}`;
    const before = vk.randomIds.get(once);
    if (before !== undefined) return { body: { response: before } };
    if (vk.isFull()) return error(6, 'Too many requests per second');
    const attachment = given.get('attachment');
    const key = attachment === null ? '' : `u${/_(\d+)/.exec(attachment)?.[1]}`;
    const sent = {
      chat,
      text: given.get('message') ?? '',
      kind: attachment?.replace(/-.*/, '') ?? 'message',
      file: uploads.get(key) ?? null,
    };
    if (sent.text === '' && attachment === null) return error(100, 'message is empty');
    await vk.before({ ...sent, at: 0 });
    vk.show(sent);
    vk.randomIds.set(once, vk.shown.length);
    return { body: { response: vk.shown.length } };
  });
  return vk;
}

/** A text, perhaps with a picture, as the messenger tells of it. */
export function telegramUpdate(
  id: number,
  text: string,
  m: { from: number; chat: number; language: string; file?: string | undefined },
): Json {
  return {
    update_id: id,
    message: {
      message_id: id,
      date: 1,
      chat: { id: m.chat, type: m.chat === m.from ? 'private' : 'supergroup' },
      from: { id: m.from, is_bot: false, first_name: 'A', language_code: m.language },
      ...(m.file === undefined
        ? { text }
        : {
            caption: text,
            photo: [
              { file_id: 'small', width: 1, height: 1 },
              { file_id: m.file, width: 9, height: 9 },
            ],
          }),
    },
  };
}

export function vkUpdate(id: string, text: string, m: { from: number; chat: number; file?: string | undefined }): Json {
  const photo = {
    type: 'photo',
    photo: {
      sizes: [
        { url: 'http://127.0.0.1:1/small', width: 1 },
        { url: m.file ?? '', width: 9 },
      ],
    },
  };
  return {
    type: 'message_new',
    group_id: Number(VK_GROUP),
    event_id: id,
    secret: VK_SECRET,
    object: {
      message: { id: 1, from_id: m.from, peer_id: m.chat, text, attachments: m.file === undefined ? [] : [photo] },
    },
  };
}

/** A command that replies with a text of its own. */
export const replier = (id: string, command: string, more: Json = {}): Uint8Array =>
  watPlugin({
    id,
    imports: ['reply'],
    triggers: [{ name: command, type: 'messenger', description: `Says ${id}`, ...more }],
    body: `(data (i32.const 1024) "{\\"text\\":\\"${id} says hello\\"}")`,
    handle: `(call $reply (i32.const 1024) (i32.const ${`{"text":"${id} says hello"}`.length}))`,
  });

/** What is not taken yet is sent again, as messengers do. */
async function post(url: string, headers: Record<string, string>, body: Json): Promise<Answer> {
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  };
  for (let k = 0; ; k++) {
    const answer = await request(url, init);
    if (answer.status !== 503 || k === 20) return answer;
    await new Promise(r => setTimeout(r, 300));
  }
}

/** The messenger calls our webhook. */
export const telegramPost = (base: string, body: Json, secret = TELEGRAM_SECRET): Promise<Answer> =>
  post(`${base}/api/messengers/telegram`, { 'x-telegram-bot-api-secret-token': secret }, body);
export const vkPost = (base: string, body: Json): Promise<Answer> => post(`${base}/api/messengers/vk`, {}, body);
