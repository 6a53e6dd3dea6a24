import * as abi from "./plugin_host";
import { FileChunk, fileMeta, FileRef, readChunk, readWhole, storeFile } from "./files";
import { HTTPResponse, sendRequest } from "./http";
import { authOf, HTTPAuthInfo, inputBody } from "./input";
import { Json, JSONValue, Obj, obj } from "./json";
import { addToKey, KeyPage, KVUpdate, listKeys, readKey, readKeys, removeKey, updateKey, writeKey } from "./kv";
import { IncomingMessage, Message, Queued, StudentFilter } from "./messages";
import { errorOf, lastCode, lastError, noteError, parked, refusal, Result } from "./result";
import { Connection, openDatabase } from "./sql";
import { pointer, utf8, utf8Text } from "./text";

const INFO = 1;
const ERROR = 3;
/** `{"Content-Type":"application/json"}` as bytes, so that the common answer encodes nothing. */
const JSON_HEADERS = memory.data<u8>([123, 34, 67, 111, 110, 116, 101, 110, 116, 45, 84, 121, 112, 101, 34, 58, 34, 97, 112, 112, 108, 105, 99, 97, 116, 105, 111, 110, 47, 106, 115, 111, 110, 34, 125]);
const JSON_HEADERS_LENGTH = 35;

/** The request to an HTTP trigger. */
export class HTTPRequest {
  constructor(private event: Json) {}
  get Method(): string {
    return this.event.str("method");
  }
  get Path(): string {
    return this.event.str("path");
  }
  /** A query parameter, empty when absent; the last value of one that is given several times. */
  Query(name: string): string {
    return this.event.get("query").str(name);
  }
  get Queries(): Json {
    return this.event.get("query");
  }
  /** A list of all values for each name, in the order they were sent. */
  get QueryAll(): Json {
    return this.event.get("query_all");
  }
  /** The query as it was sent, without `?`. */
  get RawQuery(): string {
    return this.event.str("raw_query");
  }
  /** A request header by any spelling, empty when absent. */
  Header(name: string): string {
    return this.event.get("headers").str(name.toLowerCase());
  }
  get Headers(): Json {
    return this.event.get("headers");
  }
  /** Value of a `:name` segment of the path. */
  Param(name: string): string {
    return this.event.get("params").str(name);
  }
  /** The body as text; bytes that are no UTF-8 become U+FFFD, and `BodyBytes` has them. */
  get Body(): string {
    return utf8Text(this.BodyBytes);
  }
  get BodyBytes(): ArrayBuffer {
    return inputBody();
  }
  /** The body as JSON; absent when it is none. @example ctx.HTTP.JSON().str("name") */
  JSON(): Json {
    return Json.parse(inputBody());
  }
  get RemoteAddr(): string {
    return this.event.str("remote_addr");
  }
  /** The principal that passed the host's authentication; null on public endpoints. */
  get Auth(): HTTPAuthInfo | null {
    return authOf(this.event);
  }
}

/** What another plugin asked for. */
export class PluginCall {
  constructor(private event: Json) {}
  /** Id of the plugin that calls. */
  get From(): string {
    return this.event.str("from");
  }
  get Function(): string {
    return this.event.str("function");
  }
  get Bytes(): ArrayBuffer {
    return inputBody();
  }
  get Text(): string {
    return utf8Text(this.Bytes);
  }
  /** What the caller gave, as JSON; absent when it is none. */
  get Value(): Json {
    return Json.parse(this.Bytes);
  }
  /** The principal the first execution of the chain runs for; null without a credential. */
  get Auth(): HTTPAuthInfo | null {
    return authOf(this.event);
  }
}

function callPlugin(target: string, name: string, at: usize, length: i32): i32 {
  const t = utf8(target);
  const f = utf8(name);
  return abi.plugin_call(pointer(t), t.byteLength, pointer(f), f.byteLength, at, length);
}

/** What a handler has of its execution: the event, and the functions of the host. */
export class Context {
  /** The request, inside an HTTP trigger. */
  HTTP: HTTPRequest;
  /** What another plugin asked for, inside a `Function`. */
  Call: PluginCall;
  /** The message that came in, inside a messenger trigger. */
  Message: IncomingMessage;
  constructor(private event: Json) {
    this.Message = new IncomingMessage(event.get("message"));
    this.HTTP = new HTTPRequest(event.get("http"));
    this.Call = new PluginCall(event.get("call"));
  }
  /** Name of the trigger. */
  get Trigger(): string {
    return this.event.str("trigger");
  }
  /** Id of the request; also in its record, in the log of the host, and in the answer's header `X-Request-Id`. */
  get RequestID(): string {
    return this.event.str("request_id");
  }

  // ---------- answers and log ----------

  /** Answers with JSON and `Content-Type: application/json`. @example ctx.JSON(200, obj().str("message", "hello")) */
  JSON(status: i32, value: JSONValue): void {
    const body = value.finish();
    const n = abi.respond(status, JSON_HEADERS, JSON_HEADERS_LENGTH, body.pointer, body.length);
    if (n < 0) errorOf(n);
  }
  /** Answers with any status, headers (a JSON object of strings) and body; the error text when the host refuses it. */
  SetHTTPResponse(status: i32, headers: string, body: string): string | null {
    return this.SetHTTPResponseBytes(status, headers, utf8(body));
  }
  /** The same with a body of bytes. */
  SetHTTPResponseBytes(status: i32, headers: string, body: ArrayBuffer): string | null {
    const h = utf8(headers);
    return refusal(abi.respond(status, pointer(h), h.byteLength, pointer(body), body.byteLength));
  }
  /** Answers the writer of the command; sent when the handler has ended well. The error text when the host refuses it. */
  Reply(message: Message): string | null {
    const m = message.toObj().finish();
    return refusal(abi.reply(m.pointer, m.length));
  }
  /** Answers the plugin that calls; the error text when the host refuses it. */
  Output(value: JSONValue): string | null {
    const b = value.finish();
    return this.answered(abi.output(b.pointer, b.length));
  }
  /** The same with bytes. */
  OutputBytes(bytes: ArrayBuffer): string | null {
    return this.answered(abi.output(pointer(bytes), bytes.byteLength));
  }
  /** A function whose answer was refused has failed: its caller must not take an empty one for it. */
  private answered(result: i32): string | null {
    const why = refusal(result);
    if (why !== null) this.Fail(why);
    return why;
  }
  /** A line of the execution record. */
  Log(text: string): void {
    const b = utf8(text);
    abi.log(INFO, pointer(b), b.byteLength);
  }
  /** A line of the execution record, as an error. */
  LogError(text: string): void {
    const b = utf8(text);
    abi.log(ERROR, pointer(b), b.byteLength);
  }
  /** Ends the execution as failed, once the handler returns; the text stands in the execution record. */
  Fail(text: string): void {
    const b = utf8(text);
    abi.fail(pointer(b), b.byteLength);
  }
  /** Text of the last call that failed. */
  LastError(): string {
    return lastError();
  }
  /**
   * Code of the last call that failed: `permission_denied`, `not_found`, `invalid_argument`, `too_large`, `unavailable`,
   * `deadline_passed`, `internal` or `conflict`.
   */
  LastCode(): string {
    return lastCode();
  }
  /** A field of the configuration, or null when the administrator has left it empty. */
  Config(key: string): string | null {
    const k = utf8(key);
    const n = abi.config_get(pointer(k), k.byteLength);
    return n < 0 ? null : String.UTF8.decode(parked(n));
  }
  /** What the host offers: `abi` (protocol version), `limits`, `features`. */
  HostInfo(): Json {
    return Json.parse(parked(max(abi.host_info(), 0)));
  }

  // ---------- key-value store: the requirement KV ----------

  /** The value of a key, null when there is none. */
  KVGet(key: string): Result<string | null> {
    const bytes = readKey(key);
    const value = bytes.value;
    return new Result<string | null>(value === null ? null : utf8Text(value), bytes.error);
  }
  /** The same with bytes. */
  KVGetBytes(key: string): Result<ArrayBuffer | null> {
    return readKey(key);
  }
  /** Values of up to 100 keys in one call, 4 MiB in all, in the order of the keys; null in the place of an absent one. */
  KVGetMany(keys: string[]): Result<Array<string | null>> {
    const read = readKeys(keys);
    const texts = new Array<string | null>(read.value.length);
    for (let i = 0; i < read.value.length; i++) {
      const bytes = read.value[i];
      texts[i] = bytes === null ? null : utf8Text(bytes);
    }
    return new Result<Array<string | null>>(texts, read.error);
  }
  /** The same with bytes. */
  KVGetManyBytes(keys: string[]): Result<Array<ArrayBuffer | null>> {
    return readKeys(keys);
  }
  /** Stores a value, for `ttlSeconds` when above 0; the error text when it fails. */
  KVSet(key: string, value: string, ttlSeconds: i32 = 0): string | null {
    return writeKey(key, utf8(value), ttlSeconds);
  }
  /** The same with bytes. */
  KVSetBytes(key: string, value: ArrayBuffer, ttlSeconds: i32 = 0): string | null {
    return writeKey(key, value, ttlSeconds);
  }
  /**
   * Stores a value only if the key is absent; of several executions at once exactly one writes. What had expired is absent.
   * `written` says whether it was this one, `present` which value was there instead.
   */
  KVSetIfAbsent(key: string, value: string, ttlSeconds: i32 = 0): Result<KVUpdate> {
    return updateKey(key, null, utf8(value), ttlSeconds);
  }
  /**
   * Stores a value only if the key still has the value `expected`. When it was not written, `present` is the value to try again
   * with, or null when the key is absent.
   */
  KVCompareAndSet(key: string, expected: string, value: string, ttlSeconds: i32 = 0): Result<KVUpdate> {
    return updateKey(key, utf8(expected), utf8(value), ttlSeconds);
  }
  /**
   * Adds to a whole number that is stored as decimal text and gives the sum; an absent key counts as 0. No addition is lost.
   * `ttlSeconds` 0 keeps the time to live the key has.
   */
  KVIncrement(key: string, delta: i64 = 1, ttlSeconds: i32 = 0): Result<i64> {
    return addToKey(key, delta, ttlSeconds);
  }
  /** Removes a key; the value says whether it existed. */
  KVDelete(key: string): Result<bool> {
    return removeKey(key);
  }
  /** Keys with a prefix in order, behind `after`; `next` is the place to go on from, null at the end. */
  KVList(prefix: string, after: string = "", limit: i32 = 0): Result<KeyPage> {
    return listKeys(prefix, after, limit);
  }

  // ---------- databases: the requirement Database ----------

  /** A connection to one of the plugin's databases, by its logical name; two can be open at a time. */
  Database(name: string = "default"): Result<Connection | null> {
    return openDatabase(name);
  }

  // ---------- other hosts: the requirement HTTP ----------

  /** Asks for an address. */
  HTTPGet(url: string): Result<HTTPResponse | null> {
    return this.HTTPRequest("GET", url);
  }
  /** Sends a body to an address. */
  HTTPPost(url: string, contentType: string, body: string): Result<HTTPResponse | null> {
    return this.HTTPRequest("POST", url, obj().str("content-type", contentType), utf8(body));
  }
  /**
   * Sends a request; `timeoutMs` 0 is what is left of the execution. An answer with status 404 or 500 is one.
   *
   * @example ctx.HTTPRequest("PUT", "https://example.org/a", obj().str("accept", "application/json"), String.UTF8.encode("{}"), 2000)
   */
  HTTPRequest(method: string, url: string, headers: Obj | null = null, body: ArrayBuffer = new ArrayBuffer(0), timeoutMs: i32 = 0): Result<HTTPResponse | null> {
    return sendRequest(method, url, headers, body, timeoutMs);
  }

  // ---------- messages: the requirement NotifyReq ----------

  /** Writes to a user, on the user's primary channel. */
  NotifyUser(userID: i64, message: Message): string | null {
    const m = message.toObj().finish();
    return refusal(abi.notify_user(userID, m.pointer, m.length));
  }
  /** Writes to a chat that a message has come from: its id, or `TELEGRAM:id`. */
  NotifyChat(chatID: string, message: Message): string | null {
    const id = utf8(chatID);
    const m = message.toObj().finish();
    return refusal(abi.notify_chat(pointer(id), id.byteLength, m.pointer, m.length));
  }
  /** Writes to all students a filter selects; the value is how many messages were queued, and how many cannot be reached. */
  NotifyStudents(filter: StudentFilter, message: Message): Result<Queued> {
    const f = filter.toObj().finish();
    const m = message.toObj().finish();
    const n = abi.notify_students(f.pointer, f.length, m.pointer, m.length);
    if (n < 0) return new Result<Queued>(new Queued(0, 0), errorOf(n));
    const answer = Json.trusted(parked(n));
    return new Result<Queued>(new Queued(answer.i64("queued"), answer.i64("unreachable")));
  }

  // ---------- events: the requirement EventsReq ----------

  /** Publishes an event; when it returns null it is stored and will be delivered. */
  PublishEvent(name: string, payload: JSONValue): string | null {
    const n = utf8(name);
    const p = payload.finish();
    return refusal(abi.event_publish(pointer(n), n.byteLength, p.pointer, p.length));
  }

  // ---------- other plugins: the requirement PluginDep ----------

  /** Calls a function of another plugin with a JSON value and gives what it answers. */
  CallPlugin(target: string, name: string, value: JSONValue): Result<Json> {
    const b = value.finish();
    const n = callPlugin(target, name, b.pointer, b.length);
    return n < 0 ? new Result<Json>(Json.absent(), errorOf(n)) : new Result<Json>(Json.parse(parked(n)));
  }
  /** The same into a buffer of yours: how many bytes it answered; -1 when it failed, or they do not fit (`LastError`). */
  CallPluginInto(target: string, name: string, value: JSONValue, buffer: ArrayBuffer): i32 {
    const b = value.finish();
    const n = callPlugin(target, name, b.pointer, b.length);
    if (n < 0) errorOf(n);
    else if (n <= buffer.byteLength) return abi.result_read(pointer(buffer), n);
    else
      noteError(
        "too_large",
        "the answer has " + n.toString() + " bytes, the buffer " + buffer.byteLength.toString(),
      );
    return -1;
  }
  /** Calls a function of another plugin with bytes and gives bytes. */
  CallPluginRaw(target: string, name: string, bytes: ArrayBuffer): Result<ArrayBuffer> {
    const n = callPlugin(target, name, pointer(bytes), bytes.byteLength);
    return n < 0 ? new Result<ArrayBuffer>(new ArrayBuffer(0), errorOf(n)) : new Result<ArrayBuffer>(parked(n));
  }

  // ---------- files: the requirement File ----------

  /** Whether files came with the message. */
  HasFiles(): bool {
    return this.Message.Files.length > 0;
  }
  /** Files that came with the message. */
  Files(): FileRef[] {
    return this.Message.Files;
  }
  /** What is known of a file, without its content. */
  FileMeta(fileID: string): Result<FileRef | null> {
    return fileMeta(fileID);
  }
  /** A part of a file: at most 1 MB, and that when `maxBytes` is 0. `new FileReader(id)` reads into a buffer of yours. */
  FileRead(fileID: string, offset: i64, maxBytes: i64 = 0): Result<FileChunk> {
    return readChunk(fileID, offset, maxBytes);
  }
  /** A whole file; 64 MB is the most one execution reads. */
  FileReadAll(fileID: string): Result<ArrayBuffer> {
    return readWhole(fileID);
  }
  /** An address at which the file can be read for some minutes; empty when the host cannot give one. */
  FileURL(fileID: string): Result<string> {
    const id = utf8(fileID);
    const n = abi.file_url(pointer(id), id.byteLength);
    return n < 0 ? new Result<string>("", errorOf(n)) : new Result<string>(String.UTF8.decode(parked(n)));
  }
  /** Stores a file of the plugin's own. `fileType` is `photo`, `document`, `audio`, `video`, `voice` or `sticker`. */
  FileStore(name: string, mimeType: string, fileType: string, data: ArrayBuffer): Result<FileRef | null> {
    return storeFile(name, mimeType, fileType, data, 0);
  }
  /** The same for a limited time, in milliseconds; 0 for ever. */
  FileStoreWithTTL(name: string, mimeType: string, fileType: string, data: ArrayBuffer, ttlMs: i64): Result<FileRef | null> {
    return storeFile(name, mimeType, fileType, data, ttlMs);
  }
}
