import { randomBytes } from 'node:crypto';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../base/errors.ts';

/**
 * The messenger of `plugin dev`: a server on loopback that speaks the Bot API of Telegram as far as the service uses it
 * (https://core.telegram.org/bots/api). Messages take the way they take in production, to here.
 */

/** A message that has arrived. */
export type ShownMessage = {
  chatId: string;
  text: string;
  file: { name: string; mimeType: string; bytes: Uint8Array } | null;
};

export type SentFile = { name: string; mimeType: string; bytes: Uint8Array };

const SENDS = /^send(Message|Photo|Document|Audio|Video|Voice|Sticker)$/;
/** The service asks for a bot's name, which is part of no message. */
const BOT = { id: 1, is_bot: true, username: 'dev_bot' };

type Reply = { status: number; type: string; body: string | Uint8Array };

const jsonReply = (status: number, body: object): Reply => ({
  status,
  type: 'application/json',
  body: JSON.stringify(body),
});
const done = (result: object): Reply => jsonReply(200, { ok: true, result });
const refused = (code: number, description: string): Reply =>
  jsonReply(code, { ok: false, error_code: code, description });

export class DevMessenger {
  readonly token = `1:${randomBytes(16).toString('hex')}`;
  readonly secret = randomBytes(16).toString('hex');
  readonly #files = new Map<string, SentFile>();
  readonly #shown: (message: ShownMessage) => void;
  readonly #server: http.Server;
  #updates = Date.now();
  #messages = 0;

  /** @param shown called for each message that arrives */
  constructor(shown: (message: ShownMessage) => void) {
    this.#shown = shown;
    this.#server = http.createServer((request, response) => {
      this.#answer(request)
        .catch((error: unknown) => refused(500, error instanceof Error ? error.message : String(error)))
        .then(({ body, status, type }) => response.writeHead(status, { 'content-type': type }).end(body))
        .catch(() => response.destroy());
    });
  }

  /** Listens on loopback. @returns what the service must be configured with */
  async start(): Promise<Record<string, string>> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(0, '127.0.0.1', resolve);
    });
    const address = this.#server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    return {
      BOT_MESSENGERS_TELEGRAM_TOKEN: this.token,
      BOT_MESSENGERS_TELEGRAM_SECRET: this.secret,
      BOT_MESSENGERS_TELEGRAM_API_URL: `http://127.0.0.1:${port}`,
    };
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /**
   * Hands a message to the service, as Telegram does.
   *
   * @param account number of the account, which is its private chat as well
   * @returns the id of the update
   * @throws OperatorError when the service does not take it
   */
  async send(servicePort: number, account: number, text: string, file: SentFile | null): Promise<string> {
    const id = ++this.#updates;
    const message = {
      message_id: id,
      date: Math.floor(Date.now() / 1000),
      chat: { id: account, type: 'private' },
      from: { id: account, is_bot: false, first_name: 'Dev', language_code: 'en' },
      ...(file === null ? { text } : { caption: text, document: this.#keep(String(id), file) }),
    };
    // A service that has just begun may ask to be sent it again.
    for (let attempt = 0; ; attempt++) {
      const answer = await fetch(`http://127.0.0.1:${servicePort}/api/messengers/telegram`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-telegram-bot-api-secret-token': this.secret },
        body: JSON.stringify({ update_id: id, message }),
      });
      if (answer.ok) return String(id);
      if (answer.status !== 503 || attempt === 20)
        throw new OperatorError(`the service did not take the message: ${answer.status} ${await answer.text()}`);
      await sleep(100);
    }
  }

  #keep(id: string, file: SentFile): object {
    this.#files.set(id, file);
    return { file_id: id, file_name: file.name, mime_type: file.mimeType, file_size: file.bytes.length };
  }

  async #answer(request: http.IncomingMessage): Promise<Reply> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    const url = new URL(request.url ?? '/', 'http://messenger');
    const [, file, token, method = ''] = /^(\/file)?\/bot([^/]+)\/(.+)$/.exec(url.pathname) ?? [];
    if (token !== this.token) return refused(401, 'Unauthorized');
    if (file !== undefined) {
      const kept = this.#files.get(method);
      return kept === undefined ? refused(404, 'Not Found') : { status: 200, type: kept.mimeType, body: kept.bytes };
    }
    const type = request.headers['content-type'] ?? '';
    const fields = await fieldsOf(type, new Uint8Array(Buffer.concat(chunks)));
    if (method === 'getMe') return done(BOT);
    if (method === 'getFile') return done({ file_id: fields.text('file_id'), file_path: fields.text('file_id') });
    if (!SENDS.test(method)) return refused(404, `Not Found: ${method} is not simulated`);
    this.#shown({
      chatId: fields.text('chat_id'),
      text: fields.text(method === 'sendMessage' ? 'text' : 'caption'),
      file: await fields.file(method.slice('send'.length).toLowerCase()),
    });
    return done({ message_id: ++this.#messages });
  }
}

/** The fields of a call, which come as JSON or, with a file, as a form. */
async function fieldsOf(type: string, body: Uint8Array) {
  const isForm = type.startsWith('multipart/');
  const form = isForm
    ? await new Response(Uint8Array.from(body), { headers: { 'content-type': type } }).formData()
    : null;
  const given: unknown = isForm || body.length === 0 ? {} : JSON.parse(new TextDecoder().decode(body));
  const named = new Map(typeof given === 'object' && given !== null ? Object.entries(given) : []);
  return {
    text(name: string): string {
      const value: unknown = form === null ? named.get(name) : form.get(name);
      return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
    },
    async file(name: string): Promise<ShownMessage['file']> {
      const value = form?.get(name);
      if (!(value instanceof File)) return null;
      return { name: value.name, mimeType: value.type, bytes: new Uint8Array(await value.arrayBuffer()) };
    },
  };
}
