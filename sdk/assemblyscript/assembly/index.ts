import * as abi from "./abi";
import { arr, Json, Obj, obj, quote } from "./json";
import { lastError } from "./result";
import { CHUNK_MAX, FileChunk, FileReader, FileRef } from "./files";
export { FileChunk, FileReader, FileRef } from "./files";
export { arr, Bytes, Json, Kind, Obj, obj, quote } from "./json";

const ABI = 4;
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

// ---------- manifest (service.md 2.1) ----------

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

class Trigger {
  constructor(public name: string, public path: string, public methods: string[], public handler: Handler, public description: string) {}
  toJSON(): string {
    const methods: string[] = [];
    for (let i = 0; i < this.methods.length; i++) methods.push(quote(this.methods[i]));
    return obj().str("name", this.name).str("type", "http").str("description", this.description)
      .str("path", this.path).raw("methods", arr(methods)).toString();
  }
}

export class PluginDefinition {
  id: string = "";
  title: string = "";
  version: string = "";
  requirements: Requirement[] = [];
  triggers: Trigger[] = [];
  Requires(requirement: Requirement): PluginDefinition {
    this.requirements.push(requirement);
    return this;
  }
  HTTP(name: string, path: string, methods: string[], handler: Handler, description: string = ""): PluginDefinition {
    this.triggers.push(new Trigger(name, path, methods, handler, description));
    return this;
  }
}

const definition = new PluginDefinition();

/** Declares the plugin; called once at the top of the module. */
export function Plugin(id: string, name: string, version: string): PluginDefinition {
  definition.id = id;
  definition.title = name;
  definition.version = version;
  return definition;
}

// ---------- context (service.md 2.4, 4.1) ----------

export class HTTPAuthInfo {
  constructor(public Kind: string, public UserID: i64, public ServiceKeyID: i64) {}
}

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
    const n = abi.input_len(1);
    const b = new ArrayBuffer(n);
    if (n > 0) abi.input_read(1, ptr(b), n);
    return b;
  }
  get RemoteAddr(): string {
    return this.event.str("remote_addr");
  }
  /** The principal that passed the host's authentication; null on public endpoints. */
  get Auth(): HTTPAuthInfo | null {
    const a = this.event.get("auth");
    return a.isNull ? null : new HTTPAuthInfo(a.str("kind"), a.i64("user_id"), a.i64("service_key_id"));
  }
}

export class KeyPage {
  constructor(public keys: string[], public next: string | null) {}
}

export class Context {
  HTTP: HTTPRequest;
  constructor(private event: Json) {
    this.HTTP = new HTTPRequest(event.get("http"));
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
  for (let i = 0; i < definition.triggers.length; i++) {
    if (definition.triggers[i].name != name) continue;
    definition.triggers[i].handler(new Context(event));
    return 0;
  }
  return NOT_FOUND;
}
