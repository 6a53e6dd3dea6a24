import * as abi from "./abi";
import { arr, Json, Obj, obj, quote } from "./json";
import { lastError } from "./result";
import { CHUNK_MAX, FileChunk, FileReader, FileRef } from "./files";
import { HTTPResponse, sendRequest } from "./http";
import { authOf, HTTPAuthInfo, inputBody } from "./input";
import { IncomingMessage, Message, StudentFilter } from "./messages";
import { KeyPage, KVUpdate, readKeys, updateKey } from "./kv";
import { Connection } from "./sql";
export { HTTPResponse } from "./http";
export { KeyPage, KVUpdate } from "./kv";
export { HTTPAuthInfo } from "./input";
export { IncomingMessage, Message, NewMessage, StudentFilter, Students } from "./messages";
export { Args, args, Connection, Row, Rows, Statements, Transaction } from "./sql";
export { FileChunk, FileReader, FileRef } from "./files";
export { arr, Bytes, Json, Kind, Obj, obj, quote } from "./json";

const ABI = 5;
const NOT_FOUND = -2;
/** Bytes the host passes into one execution at most. */
const READ_ALL_MAX: i64 = 64 * 1024 * 1024;
/** `{"Content-Type":"application/json"}` as bytes, so that the common answer encodes nothing. */
const JSON_HEADERS: StaticArray<u8> = [123, 34, 67, 111, 110, 116, 101, 110, 116, 45, 84, 121, 112, 101, 34, 58, 34, 97, 112, 112, 108, 105, 99, 97, 116, 105, 111, 110, 47, 106, 115, 111, 110, 34, 125];

function utf8(s: string): ArrayBuffer {
  return String.UTF8.encode(s);
}

@inline function ptr(b: ArrayBuffer): usize {
  return changetype<usize>(b);
}

function result(length: i32): ArrayBuffer {
  const b = new ArrayBuffer(length);
  if (length > 0) abi.result_read(ptr(b), length);
  return b;
}

function callPlugin(target: string, name: string, at: usize, length: i32): i32 {
  const t = utf8(target);
  const f = utf8(name);
  return abi.plugin_call(ptr(t), t.byteLength, ptr(f), f.byteLength, at, length);
}

/** Called when an assertion of the language fails; the text stands in the execution record. */
export function __abort(message: string | null, file: string | null, line: u32, column: u32): void {
  const text = (message === null ? "abort" : message) + (file === null ? "" : " (" + file + ":" + line.toString() + ":" + column.toString() + ")");
  const b = utf8(text);
  abi.fail(ptr(b), b.byteLength);
  unreachable();
}

/** A value, or the text of the error that stands in its place. */
export class Result<T> {
  constructor(public value: T, public error: string | null = null) {}
  get ok(): bool {
    return this.error === null;
  }
}

// ---------- manifest (docs/plugins.md "Requirements") ----------

export class ConfigField {
  private required: bool = false;
  private sensitive: bool = false;
  constructor(private name: string, private description: string) {}
  Required(): ConfigField {
    this.required = true;
    return this;
  }
  Sensitive(): ConfigField {
    this.sensitive = true;
    return this;
  }
  toJSON(): string {
    return obj().str("type", "string").str("name", this.name).str("description", this.description)
      .bool("required", this.required).bool("sensitive", this.sensitive).toString();
  }
}

/** `String(name, description)` of the specification; the language keeps that name for itself. */
export function StringField(name: string, description: string): ConfigField {
  return new ConfigField(name, description);
}

export function ConfigFields(fields: ConfigField[]): ConfigField[] {
  return fields;
}

export class Requirement {
  private name: string = "";
  private fields: ConfigField[] = [];
  constructor(private kind: string, private description: string, private target: string = "") {}
  Name(name: string): Requirement {
    this.name = name;
    return this;
  }
  WithConfig(fields: ConfigField[]): Requirement {
    this.fields = fields;
    return this;
  }
  Build(): Requirement {
    return this;
  }
  toJSON(): string {
    const o = obj().str("kind", this.kind).str("description", this.description);
    if (this.kind == "sql") o.str("name", this.name.length ? this.name : "default");
    if (this.target.length) o.str("target", this.target);
    const parts: string[] = [];
    for (let i = 0; i < this.fields.length; i++) parts.push(this.fields[i].toJSON());
    return o.raw("config", arr(parts)).toString();
  }
}

export function Database(description: string): Requirement {
  return new Requirement("sql", description);
}
export function KV(description: string): Requirement {
  return new Requirement("kv", description);
}
export function HTTP(description: string): Requirement {
  return new Requirement("network", description);
}
export function NotifyReq(description: string): Requirement {
  return new Requirement("notify", description);
}
export function EventsReq(description: string): Requirement {
  return new Requirement("events", description);
}
export function PluginDep(target: string, description: string): Requirement {
  return new Requirement("plugins:call", description, target);
}
export function File(description: string): Requirement {
  return new Requirement("file", description);
}

export type Handler = (ctx: Context) => void;

/** Who should call an HTTP trigger, as its author sees it. It counts when the administrator accepts it. */
export class Access {
  private policy: string = "";
  constructor(private open: bool, private users: bool, private keys: bool, private reason: string) {}
  /** A CEL expression that must be true as well; not for a public trigger. */
  Policy(expression: string): Access {
    this.policy = expression;
    return this;
  }
  toJSON(): string {
    return obj().bool("users", this.users).bool("service_keys", this.keys).str("policy", this.policy)
      .bool("public", this.open).str("reason", this.reason).toString();
  }
}

/** Suggests that anyone may call, without a login. The reason is shown to the administrator. */
export function Public(reason: string): Access {
  return new Access(true, false, false, reason);
}
export function Users(reason: string): Access {
  return new Access(false, true, false, reason);
}
export function ServiceKeys(reason: string): Access {
  return new Access(false, false, true, reason);
}
export function UsersAndServiceKeys(reason: string): Access {
  return new Access(false, true, true, reason);
}

class Trigger {
  access: Access | null = null;
  constructor(public type: string, public name: string, public path: string, public methods: string[], public handler: Handler, public description: string) {}
  toJSON(): string {
    const o = obj().str("name", this.name).str("type", this.type).str("description", this.description);
    if (this.type == "messenger") return o.toString();
    const methods: string[] = [];
    for (let i = 0; i < this.methods.length; i++) methods.push(quote(this.methods[i]));
    o.str("path", this.path).raw("methods", arr(methods));
    const access = this.access;
    if (access !== null) o.raw("access", access.toJSON());
    return o.toString();
  }
}

class CallFunction {
  constructor(public name: string, public handler: Handler) {}
}

export class PluginDefinition {
  id: string = "";
  title: string = "";
  version: string = "";
  requirements: Requirement[] = [];
  triggers: Trigger[] = [];
  functions: CallFunction[] = [];
  Requires(requirement: Requirement): PluginDefinition {
    this.requirements.push(requirement);
    return this;
  }
  /** A function other plugins may call that require this one (`PluginDep`). */
  Function(name: string, handler: Handler): PluginDefinition {
    this.functions.push(new CallFunction(name, handler));
    return this;
  }
  HTTP(name: string, path: string, methods: string[], handler: Handler, description: string = ""): PluginDefinition {
    this.triggers.push(new Trigger("http", name, path, methods, handler, description));
    return this;
  }
  /** Suggests who may call the HTTP trigger declared just before: `Public`, `Users`, `ServiceKeys`, `UsersAndServiceKeys`. */
  Access(access: Access): PluginDefinition {
    const last = this.triggers.length - 1;
    if (last < 0 || this.triggers[last].type != "http") throw new Error("Access(...) follows HTTP(...)");
    this.triggers[last].access = access;
    return this;
  }
  /** A command of messengers; its name is the command word. */
  Messenger(name: string, handler: Handler, description: string = ""): PluginDefinition {
    this.triggers.push(new Trigger("messenger", name, "", [], handler, description));
    return this;
  }
}

const definition = new PluginDefinition();

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
    return String.UTF8.decode(this.Bytes);
  }
  get Value(): Json {
    return Json.parse(this.Bytes);
  }
  /** The principal the first execution of the line runs for; null without a credential. */
  get Auth(): HTTPAuthInfo | null {
    return authOf(this.event);
  }
}

/** Declares the plugin; called once at the top of the module. */
export function Plugin(id: string, name: string, version: string): PluginDefinition {
  definition.id = id;
  definition.title = name;
  definition.version = version;
  return definition;
}

// ---------- context (docs/access.md "Principals", docs/access.md "The decision") ----------

export class HTTPRequest {
  constructor(private event: Json) {}
  get Method(): string {
    return this.event.str("method");
  }
  get Path(): string {
    return this.event.str("path");
  }
  /** A query parameter, empty when absent. */
  Query(name: string): string {
    return this.event.get("query").str(name);
  }
  get Queries(): Json {
    return this.event.get("query");
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
  get Body(): string {
    return String.UTF8.decode(this.BodyBytes);
  }
  get BodyBytes(): ArrayBuffer {
    return inputBody();
  }
  get RemoteAddr(): string {
    return this.event.str("remote_addr");
  }
  /** The principal that passed the host's authentication; null on public endpoints. */
  get Auth(): HTTPAuthInfo | null {
    return authOf(this.event);
  }
}

export class Context {
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
  get Trigger(): string {
    return this.event.str("trigger");
  }
  get RequestID(): string {
    return this.event.str("request_id");
  }
  /** A value of the installation's configuration, or null. */
  Config(key: string): string | null {
    const k = utf8(key);
    const n = abi.config_get(ptr(k), k.byteLength);
    return n < 0 ? null : String.UTF8.decode(result(n));
  }
  /** Answers with JSON and `Content-Type: application/json`. */
  JSON(status: i32, value: Obj): void {
    const body = value.finish();
    abi.respond(status, changetype<usize>(JSON_HEADERS), JSON_HEADERS.length, body.pointer, body.length);
  }
  /** Answers with any status, headers (a JSON object of strings) and body; the error text when the host refuses it. */
  SetHTTPResponse(status: i32, headers: string, body: string): string | null {
    const h = utf8(headers);
    const b = utf8(body);
    return abi.respond(status, ptr(h), h.byteLength, ptr(b), b.byteLength) < 0 ? lastError() : null;
  }
  /** The same with a body of bytes. */
  SetHTTPResponseBytes(status: i32, headers: string, body: ArrayBuffer): string | null {
    const h = utf8(headers);
    return abi.respond(status, ptr(h), h.byteLength, ptr(body), body.byteLength) < 0 ? lastError() : null;
  }
  Log(text: string): void {
    const b = utf8(text);
    abi.log(1, ptr(b), b.byteLength);
  }
  LogError(text: string): void {
    const b = utf8(text);
    abi.log(3, ptr(b), b.byteLength);
  }
  /** Ends the handler as failed; the text stands in the execution record. */
  Fail(text: string): void {
    const b = utf8(text);
    abi.fail(ptr(b), b.byteLength);
  }
  /** The value of a key, null when there is none. */
  KVGet(key: string): Result<string | null> {
    const k = utf8(key);
    const n = abi.kv_get(ptr(k), k.byteLength);
    if (n == NOT_FOUND) return new Result<string | null>(null);
    if (n < 0) return new Result<string | null>(null, lastError());
    return new Result<string | null>(String.UTF8.decode(result(n)));
  }
  /** Stores a value, for `ttlSeconds` when above 0; the error text when it fails. */
  KVSet(key: string, value: string, ttlSeconds: i32 = 0): string | null {
    const k = utf8(key);
    const v = utf8(value);
    return abi.kv_set(ptr(k), k.byteLength, ptr(v), v.byteLength, ttlSeconds) < 0 ? lastError() : null;
  }
  /** Removes a key; the value says whether it existed. */
  KVDelete(key: string): Result<bool> {
    const k = utf8(key);
    const n = abi.kv_delete(ptr(k), k.byteLength);
    return n < 0 ? new Result<bool>(false, lastError()) : new Result<bool>(n == 1);
  }
  /** Keys with a prefix in order, behind `after`; `next` is the place to go on from, null at the end. */
  KVList(prefix: string, after: string = "", limit: i32 = 0): Result<KeyPage> {
    const p = utf8(prefix);
    const a = utf8(after);
    const n = abi.kv_list(ptr(p), p.byteLength, ptr(a), a.byteLength, limit);
    if (n < 0) return new Result<KeyPage>(new KeyPage([], null), lastError());
    const page = Json.parse(result(n));
    const items = page.get("keys").items();
    const keys: string[] = [];
    for (let i = 0; i < items.length; i++) keys.push(items[i].text);
    const next = page.get("next");
    return new Result<KeyPage>(new KeyPage(keys, next.isNull ? null : next.text));
  }
  /** Values of up to 100 keys in one call, 4 MiB in all, in the order of the keys; null in the place of an absent one. */
  KVGetMany(keys: string[]): Result<Array<string | null>> {
    const values = readKeys(keys);
    return values === null ? new Result<Array<string | null>>([], lastError()) : new Result<Array<string | null>>(values);
  }
  /**
   * Stores a value only if the key is absent; of several executions at once exactly one writes. What had expired is absent.
   * `written` says whether it was this one, `present` which value was there instead.
   */
  KVSetIfAbsent(key: string, value: string, ttlSeconds: i32 = 0): Result<KVUpdate> {
    const update = updateKey(key, null, value, ttlSeconds);
    return update === null ? new Result<KVUpdate>(new KVUpdate(false, null), lastError()) : new Result<KVUpdate>(update);
  }
  /**
   * Stores a value only if the key still has the value `expected`. When it was not written, `present` is the value to try again
   * with, or null when the key is absent.
   */
  KVCompareAndSet(key: string, expected: string, value: string, ttlSeconds: i32 = 0): Result<KVUpdate> {
    const update = updateKey(key, expected, value, ttlSeconds);
    return update === null ? new Result<KVUpdate>(new KVUpdate(false, null), lastError()) : new Result<KVUpdate>(update);
  }
  /**
   * Adds to a whole number that is stored as decimal text and gives the sum; an absent key counts as 0. No addition is lost.
   * `ttlSeconds` 0 keeps the time to live the key has.
   */
  KVIncrement(key: string, delta: i64 = 1, ttlSeconds: i32 = 0): Result<i64> {
    const k = utf8(key);
    const n = abi.kv_increment(ptr(k), k.byteLength, delta, ttlSeconds);
    return n < 0 ? new Result<i64>(0, lastError()) : new Result<i64>(I64.parseInt(String.UTF8.decode(result(n))));
  }
  /** What the host offers: `abi` (protocol version), `limits`, `features`. */
  HostInfo(): Json {
    return Json.parse(result(max(abi.host_info(), 0)));
  }
  /** Whether files came with the message. */
  HasFiles(): bool {
    return this.Message.Files.length > 0;
  }
  Files(): FileRef[] {
    return this.Message.Files;
  }
  /** Answers the writer of the command; sent when the handler has ended well. The error text when the host refuses it. */
  Reply(message: Message): string | null {
    const m = message.toObj().finish();
    return abi.reply(m.pointer, m.length) < 0 ? lastError() : null;
  }
  /** Tells a user something, on the messenger they like best. */
  NotifyUser(userID: i64, message: Message): string | null {
    const m = message.toObj().finish();
    return abi.notify_user(userID, m.pointer, m.length) < 0 ? lastError() : null;
  }
  /** Writes to a chat that a message has come from: its id, or `TELEGRAM:id`. */
  NotifyChat(chatID: string, message: Message): string | null {
    const id = utf8(chatID);
    const m = message.toObj().finish();
    return abi.notify_chat(ptr(id), id.byteLength, m.pointer, m.length) < 0 ? lastError() : null;
  }
  /** Tells students something; the value is how many messages were queued. */
  NotifyStudents(filter: StudentFilter, message: Message): Result<i64> {
    const f = filter.toObj().finish();
    const m = message.toObj().finish();
    const n = abi.notify_students(f.pointer, f.length, m.pointer, m.length);
    return n < 0 ? new Result<i64>(0, lastError()) : new Result<i64>(Json.parse(result(n)).i64("queued"));
  }
  /** Tells subscribers that something has happened. */
  PublishEvent(name: string, payload: Obj): string | null {
    const n = utf8(name);
    const p = payload.finish();
    return abi.event_publish(ptr(n), n.byteLength, p.pointer, p.length) < 0 ? lastError() : null;
  }
  /** Answers the plugin that calls. */
  Output(value: Obj): void {
    const b = value.finish();
    abi.output(b.pointer, b.length);
  }
  OutputBytes(bytes: ArrayBuffer): void {
    abi.output(ptr(bytes), bytes.byteLength);
  }
  /** Calls a function of another plugin with a JSON value and gives what it answers. */
  CallPlugin(target: string, name: string, value: Obj): Result<Json> {
    const b = value.finish();
    const n = callPlugin(target, name, b.pointer, b.length);
    return n < 0 ? new Result<Json>(Json.parse(new ArrayBuffer(0)), lastError()) : new Result<Json>(Json.parse(result(n)));
  }
  /** The same into a buffer of yours: the bytes it answered, at most as many as fit; -1 when it failed (`LastError`). */
  CallPluginInto(target: string, name: string, value: Obj, buffer: ArrayBuffer): i32 {
    const b = value.finish();
    const n = callPlugin(target, name, b.pointer, b.length);
    if (n < 0) return -1;
    return abi.result_read(ptr(buffer), min(n, buffer.byteLength));
  }
  /** Calls a function of another plugin with bytes and gives bytes. */
  CallPluginRaw(target: string, name: string, bytes: ArrayBuffer): Result<ArrayBuffer> {
    const n = callPlugin(target, name, ptr(bytes), bytes.byteLength);
    return n < 0 ? new Result<ArrayBuffer>(new ArrayBuffer(0), lastError()) : new Result<ArrayBuffer>(result(n));
  }
  /** Text of the last error a host function gave. */
  LastError(): string {
    return lastError();
  }
  /** Sends a request to the world outside; `timeoutMs` 0 is what is left of the execution. */
  HTTPRequest(method: string, url: string, headers: Obj | null = null, body: ArrayBuffer = new ArrayBuffer(0), timeoutMs: i32 = 0): Result<HTTPResponse | null> {
    const answer = sendRequest(method, url, headers, body, timeoutMs);
    return new Result<HTTPResponse | null>(answer, answer === null ? lastError() : null);
  }
  HTTPGet(url: string): Result<HTTPResponse | null> {
    return this.HTTPRequest("GET", url);
  }
  HTTPPost(url: string, contentType: string, body: string): Result<HTTPResponse | null> {
    return this.HTTPRequest("POST", url, obj().str("content-type", contentType), utf8(body));
  }
  /** A connection to one of the plugin's databases, by its logical name; two can be open at a time. */
  Database(name: string = "default"): Result<Connection | null> {
    const b = utf8(name);
    const n = abi.sql_open(ptr(b), b.byteLength);
    return n < 0 ? new Result<Connection | null>(null, lastError()) : new Result<Connection | null>(new Connection(n));
  }
  /** What is known of a file, without its content. */
  FileMeta(fileID: string): Result<FileRef | null> {
    const id = utf8(fileID);
    const n = abi.file_meta(ptr(id), id.byteLength);
    if (n < 0) return new Result<FileRef | null>(null, lastError());
    return new Result<FileRef | null>(FileRef.from(Json.parse(result(n))));
  }
  /** A part of a file: at most 1 MB, and that when `maxBytes` is 0. `new FileReader(id)` reads into a buffer of yours. */
  FileRead(fileID: string, offset: i64, maxBytes: i64 = 0): Result<FileChunk> {
    const buffer = new ArrayBuffer(maxBytes <= 0 || maxBytes > CHUNK_MAX ? CHUNK_MAX : <i32>maxBytes);
    const reader = new FileReader(fileID, offset);
    const n = reader.read(buffer);
    if (n < 0) return new Result<FileChunk>(new FileChunk(new ArrayBuffer(0), false), reader.error);
    return new Result<FileChunk>(new FileChunk(n == buffer.byteLength ? buffer : buffer.slice(0, n), reader.eof));
  }
  /** A whole file; 64 MB is the most one execution reads. */
  FileReadAll(fileID: string): Result<ArrayBuffer> {
    const meta = this.FileMeta(fileID);
    if (!meta.ok) return new Result<ArrayBuffer>(new ArrayBuffer(0), meta.error);
    if (meta.value!.Size > READ_ALL_MAX) return new Result<ArrayBuffer>(new ArrayBuffer(0), "too large to be read whole");
    const whole = new ArrayBuffer(<i32>meta.value!.Size);
    const reader = new FileReader(fileID);
    while (<i32>reader.offset < whole.byteLength)
      if (reader.read(whole, <i32>reader.offset) < 0) return new Result<ArrayBuffer>(new ArrayBuffer(0), reader.error);
    return new Result<ArrayBuffer>(whole);
  }
  /** An address at which the file can be read for some minutes; empty when the host cannot give one. */
  FileURL(fileID: string): Result<string> {
    const id = utf8(fileID);
    const n = abi.file_url(ptr(id), id.byteLength);
    return n < 0 ? new Result<string>("", lastError()) : new Result<string>(String.UTF8.decode(result(n)));
  }
  /** Stores a file of the plugin's own. */
  FileStore(name: string, mimeType: string, fileType: string, data: ArrayBuffer): Result<FileRef | null> {
    return this.FileStoreWithTTL(name, mimeType, fileType, data, 0);
  }
  /** The same for a limited time, in milliseconds; 0 for ever. */
  FileStoreWithTTL(name: string, mimeType: string, fileType: string, data: ArrayBuffer, ttlMs: i64): Result<FileRef | null> {
    const said = obj().str("name", name).str("mime_type", mimeType).str("file_type", fileType);
    if (ttlMs > 0) said.num("ttl_ms", ttlMs);
    const json = said.finish();
    const n = abi.file_store(json.pointer, json.length, ptr(data), data.byteLength);
    if (n < 0) return new Result<FileRef | null>(null, lastError());
    return new Result<FileRef | null>(FileRef.from(Json.parse(result(n))));
  }
}

// ---------- entry points ----------

export function plugin_describe(): i32 {
  const requirements: string[] = [];
  for (let i = 0; i < definition.requirements.length; i++) requirements.push(definition.requirements[i].toJSON());
  const triggers: string[] = [];
  for (let i = 0; i < definition.triggers.length; i++) triggers.push(definition.triggers[i].toJSON());
  const b = utf8(
    obj().num("abi", ABI).str("id", definition.id).str("name", definition.title).str("version", definition.version)
      .raw("requirements", arr(requirements)).raw("triggers", arr(triggers)).toString(),
  );
  return abi.output(ptr(b), b.byteLength);
}

export function plugin_handle(): i32 {
  const n = abi.input_len(0);
  const b = new ArrayBuffer(n);
  abi.input_read(0, ptr(b), n);
  const event = Json.trusted(b);
  const name = event.str("trigger");
  if (event.str("kind") == "call") {
    for (let i = 0; i < definition.functions.length; i++) {
      if (definition.functions[i].name != name) continue;
      definition.functions[i].handler(new Context(event));
      return 0;
    }
    const unknown = utf8("there is no function " + quote(name));
    abi.fail(ptr(unknown), unknown.byteLength);
    return NOT_FOUND;
  }
  for (let i = 0; i < definition.triggers.length; i++) {
    if (definition.triggers[i].name != name) continue;
    definition.triggers[i].handler(new Context(event));
    return 0;
  }
  return NOT_FOUND;
}
