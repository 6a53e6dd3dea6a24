import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { z } from 'zod';
import type { Actor } from '../audit/audit-log.ts';
import { OperatorError } from '../base/errors.ts';
import { fieldErrorsOf } from '../base/field-errors.ts';
import { LIMITS } from '../base/limits.ts';
import { readPrincipal } from '../base/principal.ts';
import { makeSemaphore } from '../base/semaphore.ts';
import type { Database } from '../db/database.ts';
import { findUser } from '../identity/find-users.ts';
import { ALL_TRIGGERS, addServiceKey } from '../identity/service-keys.ts';
import { addUserToken } from '../identity/user-tokens.ts';
import { addUser } from '../identity/users.ts';
import type { MessageAnswer } from './dev-messages.ts';

/**
 * What listens for an author in front of the service of `plugin dev`: `X-Dev-Principal: user:7` becomes the credential
 * of a user there really is, so that nothing behind it decides otherwise than in production.
 */

const HEADER = 'x-dev-principal';
const BY: Actor = { kind: 'command_line', userId: null, name: 'plugin dev', requestId: '', address: '' };
const USERS_MAX = 1000;
/** What the service says to users is in the language of the terminal. */
export const DEV_LOCALE = 'en';

/** Bearer credentials of development principals, made when they are first asked for. */
export class DevPrincipals {
  readonly #db: Database;
  readonly #pluginId: () => string;
  readonly #prefixes: { userToken: string; serviceKey: string };
  readonly #known = new Map<string, Promise<string>>();
  /** Users are made one after the other: each has the number that comes next. */
  readonly #inTurn = makeSemaphore(1);
  readonly #made: (userId: number) => Promise<void>;

  /**
   * @param pluginId of the plugin that service keys open
   * @param made called with a user that is asked for, before anything is done as that user
   */
  constructor(
    db: Database,
    prefixes: { userToken: string; serviceKey: string },
    pluginId: () => string,
    made: (userId: number) => Promise<void>,
  ) {
    this.#db = db;
    this.#prefixes = prefixes;
    this.#pluginId = pluginId;
    this.#made = made;
  }

  /**
   * @param text `user:7`, or `service:1`
   * @throws OperatorError that says how it is written
   */
  bearerOf(text: string): Promise<string> {
    // A service key opens the plugin it was made for.
    const name = text.startsWith('service:') ? `${text} ${this.#pluginId()}` : text;
    const known = this.#known.get(name) ?? this.#make(text);
    this.#known.set(name, known);
    known.catch(() => this.#known.delete(name));
    return known;
  }

  async #make(text: string): Promise<string> {
    const principal = readPrincipal(text);
    if (principal?.kind === 'user') return await this.#userToken(principal.userId);
    if (principal?.kind === 'service') return await this.#serviceKey(text);
    throw new OperatorError(`${HEADER}: "${text}" is no principal: write user:7 or service:1`);
  }

  /** Users have the ids they are asked for by: those before are made as well. */
  async #userToken(id: number): Promise<string> {
    if (id < 1 || id > USERS_MAX) throw new OperatorError(`${HEADER}: users have the numbers 1 to ${USERS_MAX}`);
    await this.#inTurn(async () => {
      while ((await findUser(this.#db, id)) === undefined) {
        const made = await addUser(this.#db, { displayName: 'Development user', locale: DEV_LOCALE });
        if (made.id > id) throw new OperatorError(`${HEADER}: there is no user ${id}: it was removed`);
      }
    });
    await this.#made(id);
    const token = await addUserToken(this.#db, this.#prefixes.userToken, { userId: id, name: 'dev', expiresAt: null });
    return token.text;
  }

  async #serviceKey(name: string): Promise<string> {
    const scopes = [{ pluginId: this.#pluginId(), trigger: ALL_TRIGGERS }];
    const key = await addServiceKey(this.#db, this.#prefixes.serviceKey, { name, scopes, expiresAt: null }, BY);
    return key.text;
  }
}

export type AnsweredRequest = {
  method: string;
  url: string;
  status: number;
  ms: number;
  /** Whether the service refused it, and not the plugin. */
  isRefusal: boolean;
};

export type FrontOptions = {
  port: number;
  /** Sends a message to the plugin, as a messenger does. */
  message(order: MessageOrder): Promise<MessageAnswer>;
  /** Port of the service behind it. */
  servicePort: number;
  principals: DevPrincipals;
  /** Path of the plugin's pages, or of the service. */
  page(): string;
  /** Called for each request that was answered. */
  answered(request: AnsweredRequest): void;
  /** Called while a request runs a plugin for long. @param ms how long it has waited */
  late(ms: number): void;
};

export type Front = { port: number; close(): void };

/** Where `plugin dev` listens when nothing else is said. */
export const DEV_PORT = 8787;
/** Where `plugin message` asks; no path of the service. */
export const MESSAGE_PATH = '/dev/messages';

const messageOrder = z.strictObject({
  as: z.string(),
  text: z.string(),
  file: z
    .strictObject({
      name: z.string(),
      mime_type: z.string().regex(/^[\w.+-]+\/[\w.+-]+$/, 'must be a type like image/png'),
      base64: z.string(),
    })
    .nullable(),
});
export type MessageOrder = z.infer<typeof messageOrder>;

/** What `plugin message` is answered with. */
export const messageReply = z.object({
  outcome: z.string(),
  messages: z.array(
    z.object({
      to: z.string(),
      text: z.string(),
      file: z.object({ name: z.string(), mime_type: z.string(), size: z.number(), base64: z.string() }).nullable(),
    }),
  ),
});
export type MessageReply = z.infer<typeof messageReply>;

const MESSAGE_BYTES_MAX = 40 * 1024 * 1024;

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new OperatorError(`the body is not JSON: ${error instanceof Error ? error.message : error}`);
  }
}

/** A page of the author's browser cannot send this: another type than that of forms is asked about first, and refused. */
async function takeMessage(
  o: FrontOptions,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  if (request.headers['content-type'] !== 'application/json')
    throw new OperatorError('the content type must be application/json');
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > MESSAGE_BYTES_MAX) throw new OperatorError('the message has more than 40 MB');
    chunks.push(bytes);
  }
  const read = messageOrder.safeParse(jsonOf(Buffer.concat(chunks).toString()));
  if (!read.success)
    throw new OperatorError(
      fieldErrorsOf(read.error)
        .map(e => `${e.pointer}: ${e.message}`)
        .join('; '),
    );
  const { messages, outcome } = await o.message(read.data);
  const reply: MessageReply = {
    outcome,
    messages: messages.map(({ file, text, to }) => ({
      to,
      text,
      file:
        file === null
          ? null
          : {
              name: file.name,
              mime_type: file.mimeType,
              size: file.bytes.length,
              base64: Buffer.from(file.bytes).toString('base64'),
            },
    })),
  };
  response.writeHead(200, { 'content-type': 'application/json' }).end(`${JSON.stringify(reply)}\n`);
}

function refuse(response: http.ServerResponse, error: unknown): void {
  const text = error instanceof Error ? error.message : String(error);
  response.writeHead(error instanceof OperatorError ? 400 : 502, { 'content-type': 'application/json' });
  response.end(`${JSON.stringify({ error: text })}\n`);
}

/** Where a browser becomes a principal: `/dev/as/user:7`. */
const AS_PATH = /^\/dev\/as\/([^/?]+)$/;
const COOKIE = 'dev_principal';

/** A page of another site that has its name point here gets nothing. */
const isLocal = (host: string | undefined): boolean => /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/.test(host ?? '');

/** From the header, or for a browser from the cookie; null for none. */
function principalOf({ headers, method }: http.IncomingMessage): string | null {
  const { [HEADER]: named } = headers;
  if (typeof named === 'string') return named;
  const [, cookie] = new RegExp(`(?:^|; )${COOKIE}=((?:user|service)%3A\\d+)(?:;|$)`).exec(headers.cookie ?? '') ?? [];
  const isRead = method === 'GET' || method === 'HEAD';
  // A page on another port is of the same site, so that its requests bring the cookie.
  const comesFromHere = isRead || headers.origin === `http://${headers.host}`;
  return cookie === undefined || !comesFromHere ? null : decodeURIComponent(cookie);
}

/** Makes a browser a principal, or takes that back (`/dev/as/none`), and leads it to the pages of the plugin. */
async function becomePrincipal(o: FrontOptions, text: string, response: http.ServerResponse): Promise<void> {
  const isNone = text === 'none';
  if (!isNone) await o.principals.bearerOf(text);
  const value = isNone ? '; Max-Age=0' : encodeURIComponent(text);
  response
    .writeHead(302, { location: o.page(), 'set-cookie': `${COOKIE}=${value}; Path=/; HttpOnly; SameSite=Strict` })
    .end();
}

/** Answers that the service has given in the place of the plugin. */
const refusals = new WeakSet<http.ServerResponse>();

/** Hands a request on, with the credential of its principal. */
async function handOn(o: FrontOptions, request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
  const [, as] = AS_PATH.exec(request.url ?? '') ?? [];
  if (as !== undefined && request.method === 'GET') return await becomePrincipal(o, decodeURIComponent(as), response);
  const principal = principalOf(request);
  const { [HEADER]: _, ...headers } = request.headers;
  const bearer = principal === null ? null : await o.principals.bearerOf(principal);
  const onward = http.request({
    host: '127.0.0.1',
    port: o.servicePort,
    method: request.method,
    path: request.url,
    headers: bearer === null ? headers : { ...headers, authorization: `Bearer ${bearer}` },
  });
  onward.on('response', answer => {
    if (answer.headers['content-type']?.startsWith('application/problem+json') === true) refusals.add(response);
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
    answer.on('close', () => {
      if (!answer.complete) response.destroy();
    });
  });
  onward.on('error', error => {
    if (response.headersSent) response.destroy();
    else refuse(response, error);
  });
  response.on('close', () => onward.destroy());
  request.pipe(onward);
}

const portTaken = (port: number): OperatorError =>
  new OperatorError(`port ${port} is in use: name another one with --port`);

/** @throws OperatorError when another program listens on a port of loopback; before anything is started that takes long */
export async function assertPortIsFree(port: number): Promise<void> {
  const server = net.createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch (error) {
    throw error instanceof Error && 'code' in error && error.code === 'EADDRINUSE' ? portTaken(port) : error;
  } finally {
    server.close();
  }
}

/** An execution that has not ended by then is looked at, before its deadline. */
const LATE_MS = LIMITS.executionMsMax - 1500;

/** Whether a plugin runs for it. */
const runsPlugin = (url: string): boolean => url.startsWith('/api/triggers/') || url === MESSAGE_PATH;

/** Listens on loopback alone. @throws OperatorError when the port is taken */
export function startFront(options: FrontOptions): Promise<Front> {
  const server = http.createServer((request, response) => {
    const begun = performance.now();
    response.on('finish', () =>
      options.answered({
        method: request.method ?? '',
        url: request.url ?? '',
        status: response.statusCode,
        ms: performance.now() - begun,
        isRefusal: refusals.has(response),
      }),
    );
    if (runsPlugin(request.url ?? '')) {
      const late = setTimeout(() => options.late(LATE_MS), LATE_MS);
      response.on('close', () => clearTimeout(late));
    }
    if (!isLocal(request.headers.host))
      return refuse(response, new OperatorError('plugin dev answers at 127.0.0.1 and localhost alone'));
    const handle = request.method === 'POST' && request.url === MESSAGE_PATH ? takeMessage : handOn;
    handle(options, request, response).catch((error: unknown) => refuse(response, error));
  });
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'EADDRINUSE' ? portTaken(options.port) : error),
    );
    server.listen(options.port, '127.0.0.1', () => {
      const address = server.address();
      resolve({
        port: typeof address === 'object' && address !== null ? address.port : options.port,
        close() {
          server.closeAllConnections();
          server.close();
        },
      });
    });
  });
}
