import { authOf, type HostEvent, type HTTPAuthInfo, inputBytes, inputText } from './event.ts';
import { exactJSON } from './exact-json.ts';
import type { FileChunk, FileRef, FileType } from './files.ts';
import * as files from './files.ts';
import { checked, contentOf, int64, NOT_FOUND, parked, parkedText, toJSON } from './host.ts';
import * as raw from './host-functions.js';
import { type HTTPOrder, type HTTPResponse, sendRequest } from './http.ts';
import * as kv from './kv.ts';
import { IncomingMessage, type Message, type StudentFilter } from './messages.ts';
import { type Connection, openDatabase } from './sql.ts';

/** Values JSON can hold; a `bigint` is written with all its digits. */
type JSONValue = unknown;

/** The request to an HTTP trigger. */
export class HTTPRequest {
  readonly Method: string;
  readonly Path: string;
  /** Of a name that is given several times the last value. */
  readonly Query: Readonly<Record<string, string>>;
  /** All values of each name, in the order they were sent: `?tag=a&tag=b`. */
  readonly QueryAll: Readonly<Record<string, readonly string[]>>;
  /** The query as it was sent, without `?`. */
  readonly RawQuery: string;
  /** By names in lower case. */
  readonly Headers: Readonly<Record<string, string>>;
  /** Values of the `:name` segments of the path. */
  readonly Params: Readonly<Record<string, string>>;
  readonly RemoteAddr: string;
  /** For whom the host has let the request in; null for a public trigger. */
  readonly Auth: HTTPAuthInfo | null;

  constructor(event: NonNullable<HostEvent['http']>) {
    this.Method = event.method;
    this.Path = event.path;
    this.Query = event.query;
    this.QueryAll = event.query_all;
    this.RawQuery = event.raw_query;
    this.Headers = event.headers;
    this.Params = event.params;
    this.RemoteAddr = event.remote_addr;
    this.Auth = authOf(event.auth);
  }
  get Body(): string {
    return inputText();
  }
  get BodyBytes(): Uint8Array {
    return inputBytes();
  }
  /** The body as JSON, in the form the plugin expects; whole numbers beyond 2^53 are a `bigint`. Nothing checks it. @throws SyntaxError when it is none */
  JSON<T>(): T {
    return exactJSON(inputText());
  }
}

/** What another plugin asked for. */
export class PluginCall {
  /** Id of the plugin that calls. */
  readonly From: string;
  readonly Function: string;
  /** The principal the first execution of the chain runs for; null without a credential. */
  readonly Auth: HTTPAuthInfo | null;

  constructor(event: NonNullable<HostEvent['call']>) {
    this.From = event.from;
    this.Function = event.function;
    this.Auth = authOf(event.auth);
  }
  get Bytes(): Uint8Array {
    return inputBytes();
  }
  get Text(): string {
    return inputText();
  }
  /** What the caller gave, as JSON. @throws SyntaxError when it is none */
  get Value(): JSONValue {
    return exactJSON(inputText());
  }
}

const INFO = 1;
const ERROR = 3;
const JSON_HEADERS = '{"Content-Type":"application/json"}';

/** What a handler has of its execution: the event, and the functions of the host. */
export class Context {
  readonly #event: HostEvent;
  #http: HTTPRequest | undefined;
  #message: IncomingMessage | undefined;
  #call: PluginCall | undefined;

  constructor(event: HostEvent) {
    this.#event = event;
  }

  /** Name of the trigger. */
  get Trigger(): string {
    return this.#event.trigger;
  }
  /** Id of the request; also in its record, in the log of the host, and in the answer's header `X-Request-Id`. */
  get RequestID(): string {
    return this.#event.request_id;
  }
  /** The request. @throws Error in a handler of something else */
  get HTTP(): HTTPRequest {
    const { http } = this.#event;
    if (http === undefined) throw new Error(`ctx.HTTP is for HTTP triggers; this event is "${this.#event.kind}"`);
    this.#http ??= new HTTPRequest(http);
    return this.#http;
  }
  /** The message with the command. @throws Error in a handler of something else */
  get Message(): IncomingMessage {
    const { message } = this.#event;
    if (message === undefined)
      throw new Error(`ctx.Message is for messenger triggers; this event is "${this.#event.kind}"`);
    this.#message ??= new IncomingMessage(message);
    return this.#message;
  }
  /** The call of another plugin. @throws Error in a handler of something else */
  get Call(): PluginCall {
    const { call } = this.#event;
    if (call === undefined) throw new Error(`ctx.Call is for functions; this event is "${this.#event.kind}"`);
    this.#call ??= new PluginCall(call);
    return this.#call;
  }

  // ---------- answers and log ----------

  /** Answers with JSON. @example ctx.JSON(200, { message: 'hello' }) */
  JSON(status: number, value: JSONValue): void {
    checked(raw.respond(status, JSON_HEADERS, toJSON(value)));
  }
  /**
   * Answers with any status, headers and body; a list gives a header several times, as `Set-Cookie`. The host drops
   * headers that act beyond the answer.
   */
  SetHTTPResponse(
    status: number,
    headers: Record<string, string | readonly string[]>,
    body: string | Uint8Array = '',
  ): void {
    checked(raw.respond(status, toJSON(headers), contentOf('a body', body)));
  }
  /** Answers a command with a message; may be called 20 times. */
  Reply(message: Message): void {
    checked(raw.reply(toJSON(message)));
  }
  /** Answers a call of another plugin with a value. */
  Output(value: JSONValue): void {
    checked(raw.output(toJSON(value)));
  }
  /** Answers a call of another plugin with bytes. */
  OutputBytes(bytes: string | Uint8Array): void {
    checked(raw.output(contentOf('an answer', bytes)));
  }
  /** A line of the execution record. */
  Log(text: string): void {
    raw.log(INFO, `${text}`);
  }
  /** A line of the execution record, as an error. */
  LogError(text: string): void {
    raw.log(ERROR, `${text}`);
  }
  /** A field of the configuration; null when the administrator has left it empty. */
  Config(name: string): string | null {
    const result = raw.config_get(name);
    return result === NOT_FOUND ? null : raw.result_text(checked(result));
  }
  /** What this host speaks and allows. */
  HostInfo(): { abi: number; limits: Record<string, number>; features: string[] } {
    return parked(raw.host_info());
  }

  // ---------- key-value store: the requirement KV ----------

  /** The value of a key as text; null when the key is absent. */
  KVGet(key: string): string | null {
    return kv.getText(key);
  }
  /** The value of a key as bytes; null when the key is absent. */
  KVGetBytes(key: string): Uint8Array | null {
    return kv.getBytes(key);
  }
  /** Values of at most 100 keys in their order; null for an absent one. */
  KVGetMany(keys: readonly string[]): Array<string | null> {
    return kv.getMany(keys);
  }
  /** The same with bytes. */
  KVGetManyBytes(keys: readonly string[]): Array<Uint8Array | null> {
    return kv.getManyBytes(keys);
  }
  /** Writes a value; with `ttlSeconds` it is gone after that time, rounded up to whole seconds. 0 means no end. */
  KVSet(key: string, value: string | Uint8Array, ttlSeconds = 0): void {
    kv.set(key, value, ttlSeconds);
  }
  /** Writes only if the key is absent: to claim something that only one caller may have. */
  KVSetIfAbsent(key: string, value: string | Uint8Array, ttlSeconds = 0): kv.KVUpdate {
    return kv.update(key, null, value, ttlSeconds);
  }
  /** Writes only if the value is `expected`: to change what was read before. */
  KVCompareAndSet(key: string, expected: string | Uint8Array, value: string | Uint8Array, ttlSeconds = 0): kv.KVUpdate {
    return kv.update(key, expected, value, ttlSeconds);
  }
  /** Adds to a whole number, an absent one counts as 0. @returns the sum */
  KVIncrement(key: string, delta: number | bigint = 1, ttlSeconds = 0): bigint {
    return kv.increment(key, delta, ttlSeconds);
  }
  /** @returns whether the key was there */
  KVDelete(key: string): boolean {
    return kv.remove(key);
  }
  /** Keys in order: those that begin with `prefix`, behind the key `after`; at most `limit` (1000 without it). */
  KVList(prefix = '', after = '', limit = 0): kv.KeyPage {
    return kv.list(prefix, after, limit);
  }

  // ---------- databases: the requirement Database ----------

  /** A connection to a database by its logical name. @example ctx.Database('grades').Query('SELECT 1') */
  Database(name = 'default'): Connection {
    return openDatabase(name);
  }

  // ---------- other hosts: the requirement HTTP ----------

  /** Gets an address of a host the administrator allows. Any status is an answer; no answer is a HostError. */
  HTTPGet(url: string): HTTPResponse {
    return sendRequest({ URL: url });
  }
  /** Posts a body to such an address. */
  HTTPPost(url: string, contentType: string, body: string | Uint8Array): HTTPResponse {
    return sendRequest({ Method: 'POST', URL: url, Headers: { 'Content-Type': contentType }, Body: body });
  }
  /** @throws HostError when no answer came; an answer with status 404 or 500 is one */
  HTTPRequest(order: HTTPOrder): HTTPResponse {
    return sendRequest(order);
  }

  // ---------- messages: the requirement NotifyReq ----------

  /** Writes to a user, on the user's primary channel. */
  NotifyUser(userID: number | bigint, message: Message): void {
    checked(raw.notify_user(int64('the id of a user', userID), toJSON(message)));
  }
  /** Writes to a chat that has written before. */
  NotifyChat(chatID: string, message: Message): void {
    checked(raw.notify_chat(chatID, toJSON(message)));
  }
  /** Writes to all students a filter selects. @returns how many messages were queued, and who cannot be reached */
  NotifyStudents(filter: StudentFilter, message: Message): { queued: number; unreachable: number } {
    return parked(raw.notify_students(toJSON(filter), toJSON(message)));
  }

  // ---------- events: the requirement EventsReq ----------

  /** Publishes an event; once this returns it is stored and will be delivered. */
  PublishEvent(name: string, payload: JSONValue): void {
    checked(raw.event_publish(name, toJSON(payload)));
  }

  // ---------- other plugins: the requirement PluginDep ----------

  /** Calls a function of another plugin with a value. @returns what it answered, as JSON; null when it gave no answer */
  CallPlugin(target: string, name: string, value: JSONValue = null): JSONValue {
    const answer = parkedText(raw.plugin_call(target, name, toJSON(value)));
    return answer === '' ? null : exactJSON(answer);
  }
  /** The same, with a function that makes what is wanted from the answer. */
  CallPluginInto<T>(target: string, name: string, value: JSONValue, into: (answer: JSONValue) => T): T {
    return into(this.CallPlugin(target, name, value));
  }
  /** The same with bytes in both directions. */
  CallPluginRaw(target: string, name: string, bytes: string | Uint8Array): Uint8Array {
    return raw.result_bytes(checked(raw.plugin_call(target, name, contentOf('what is sent', bytes))));
  }

  // ---------- files: the requirement File ----------

  /** Whether the message has files. */
  HasFiles(): boolean {
    return this.Files().length > 0;
  }
  /** Files of the message. */
  Files(): FileRef[] {
    return this.#event.message === undefined ? [] : this.Message.Files;
  }
  /** Name, type and size of a file, without its content. @throws HostError `not_found` also for one it may not read */
  FileMeta(fileID: string): FileRef {
    return files.fileMeta(fileID);
  }
  /** Reads a part: at most 1 MB, which is also what `maxBytes` 0 means. */
  FileRead(fileID: string, offset: number, maxBytes = 0): FileChunk {
    return files.fileRead(fileID, offset, maxBytes);
  }
  /** Reads the whole file into memory. */
  FileReadAll(fileID: string): Uint8Array {
    return files.fileReadAll(fileID);
  }
  /** An address at which the file can be read for a while; empty when the store has no such links. */
  FileURL(fileID: string): string {
    return files.fileURL(fileID);
  }
  /** Stores a file of the plugin's own, which stays until the plugin is removed. */
  FileStore(name: string, mimeType: string, fileType: FileType, data: string | Uint8Array): FileRef {
    return files.fileStore(name, mimeType, fileType, data, 0);
  }
  /** Stores a file that is deleted after a time. */
  FileStoreWithTTL(
    name: string,
    mimeType: string,
    fileType: FileType,
    data: string | Uint8Array,
    ttlMs: number,
  ): FileRef {
    return files.fileStore(name, mimeType, fileType, data, ttlMs);
  }
}
