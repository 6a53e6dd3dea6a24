import {
  args, Args, ConfigFields, Connection, Context, Database, EventsReq, File, FileRef, fromBase64, HTTP, Json, Kind, KV, KVUpdate, List,
  list, NewMessage, NotifyReq, obj, Obj, Plugin, PluginDep, Result, strings, StringField, Students, toBase64,
} from "@plugin-host/sdk";

// Does what a test asks for, one function of the kit at a time: the same plugin is written in every kit.

Plugin("conformance", "Conformance", "1.0.0")
  .Requires(KV("Cases").WithConfig(ConfigFields([StringField("title", "A title").Required(), StringField("none", "Empty")])).Build())
  .Requires(Database("Cases").Build())
  .Requires(HTTP("Cases").Build())
  .Requires(NotifyReq("Cases").Build())
  .Requires(EventsReq("Cases").Build())
  .Requires(PluginDep("target", "Cases").Build())
  .Requires(File("Cases").Build())
  .HTTP("run", "/run/:case", ["GET", "POST"], run)
  .Messenger("say", say, "Says what came")
  .Function("double", double)
  .Function("reverse", reverse)
  .Function("refuse", refuse);

/** What a case is given; what is missing is empty. */
class Given {
  private items: Json[];
  constructor(body: Json) {
    this.items = body.items();
  }
  value(k: i32): Json {
    return k < this.items.length ? this.items[k] : Json.absent();
  }
  str(k: i32): string {
    return this.value(k).text;
  }
  num(k: i32): i64 {
    return this.value(k).integer;
  }
  bytes(k: i32): ArrayBuffer {
    const b = fromBase64(this.str(k));
    return b === null ? new ArrayBuffer(0) : b!;
  }
}

// ---------- answers ----------

function refused(ctx: Context): void {
  ctx.JSON(200, obj().str("code", ctx.LastCode()).str("text", ctx.LastError()));
}

function done(ctx: Context, failure: string | null): void {
  if (failure !== null) return refused(ctx);
  ctx.JSON(200, obj().nul("result"));
}

function sayText(ctx: Context, value: string | null): void {
  ctx.JSON(200, value === null ? obj().nul("result") : obj().str("result", value!));
}

function sayNumber(ctx: Context, value: i64): void {
  ctx.JSON(200, obj().num("result", value));
}

function sayBool(ctx: Context, value: bool): void {
  ctx.JSON(200, obj().bool("result", value));
}

function sayObj(ctx: Context, value: Obj): void {
  ctx.JSON(200, obj().object("result", value));
}

function sayList(ctx: Context, value: List): void {
  ctx.JSON(200, obj().list("result", value));
}

function sayUpdate(ctx: Context, update: Result<KVUpdate>): void {
  if (!update.ok) return refused(ctx);
  const o = obj().bool("written", update.value.written);
  if (!update.value.written) {
    const present = update.value.present;
    if (present === null) o.nul("present");
    else o.str("present", present);
  }
  sayObj(ctx, o);
}

function sayFile(ctx: Context, file: Result<FileRef | null>): void {
  if (!file.ok) return refused(ctx);
  sayObj(ctx, file.value!.toObj());
}

// ---------- cases ----------

function request(ctx: Context): void {
  const r = ctx.HTTP;
  const o = obj().str("method", r.Method).str("path", r.Path).json("query", r.Queries).json("query_all", r.QueryAll).str("raw_query", r.RawQuery).json("header", r.Headers.get("x-test"))
    .str("param", r.Param("case")).str("address", r.RemoteAddr);
  const auth = r.Auth;
  if (auth === null) o.nul("auth");
  else o.object("auth", obj().str("kind", auth.Kind).num("user_id", auth.UserID).num("service_key_id", auth.ServiceKeyID));
  sayObj(ctx, o);
}

function keysOf(g: Given): string[] {
  const given = g.value(0).items();
  const keys: string[] = [];
  for (let i = 0; i < given.length; i++) keys.push(given[i].text);
  return keys;
}

function sayTexts(ctx: Context, texts: Array<string | null>): void {
  const all = list();
  for (let i = 0; i < texts.length; i++) {
    const text = texts[i];
    if (text === null) all.nul();
    else all.str(text);
  }
  sayList(ctx, all);
}

function keyValues(ctx: Context, name: string, g: Given): bool {
  const key = g.str(0);
  if (name == "kv_get") {
    const value = ctx.KVGet(key);
    if (value.ok) sayText(ctx, value.value);
    else refused(ctx);
  } else if (name == "kv_get_bytes") {
    const value = ctx.KVGetBytes(key);
    if (!value.ok) refused(ctx);
    else if (value.value === null) sayText(ctx, null);
    else sayText(ctx, toBase64(value.value!));
  } else if (name == "kv_get_many") {
    const values = ctx.KVGetMany(keysOf(g));
    if (values.ok) sayTexts(ctx, values.value);
    else refused(ctx);
  } else if (name == "kv_get_many_bytes") {
    const values = ctx.KVGetManyBytes(keysOf(g));
    if (values.ok) sayTexts(ctx, values.value.map<string | null>(b => (b === null ? null : toBase64(b))));
    else refused(ctx);
  } else if (name == "kv_set") done(ctx, ctx.KVSet(key, g.str(1), <i32>g.num(2)));
  else if (name == "kv_set_bytes") done(ctx, ctx.KVSetBytes(key, g.bytes(1)));
  else if (name == "kv_set_if_absent") sayUpdate(ctx, ctx.KVSetIfAbsent(key, g.str(1)));
  else if (name == "kv_compare_and_set") sayUpdate(ctx, ctx.KVCompareAndSet(key, g.str(1), g.str(2)));
  else if (name == "kv_increment") {
    const sum = ctx.KVIncrement(key, I64.parseInt(g.str(1)));
    if (sum.ok) sayNumber(ctx, sum.value);
    else refused(ctx);
  } else if (name == "kv_delete") {
    const removed = ctx.KVDelete(key);
    if (removed.ok) sayBool(ctx, removed.value);
    else refused(ctx);
  } else if (name == "kv_list") {
    const page = ctx.KVList(key, g.str(1), <i32>g.num(2));
    if (!page.ok) refused(ctx);
    else {
      const next = page.value.next;
      const o = obj().list("keys", strings(page.value.keys));
      sayObj(ctx, next === null ? o.nul("next") : o.str("next", next));
    }
  } else return false;
  return true;
}

/** The values of a statement from JSON: lists hold numbers. */
function values(given: Json): Args {
  const out = args();
  const items = given.items();
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    if (item.kind == Kind.String) out.str(item.text);
    else if (item.kind == Kind.Number) out.num(item.integer);
    else if (item.kind == Kind.Bool) out.bool(item.flag);
    else if (item.kind == Kind.Object) out.json(item);
    else if (item.kind == Kind.Array) {
      const numbers = args();
      const inner = item.items();
      for (let k = 0; k < inner.length; k++) numbers.num(inner[k].integer);
      out.list(numbers);
    } else out.nul();
  }
  return out;
}

function changed(ctx: Context, count: i64): void {
  if (count < 0) return refused(ctx);
  sayNumber(ctx, count);
}

function transaction(ctx: Context, db: Connection, g: Given): void {
  const tx = db.Begin();
  if (tx === null) return refused(ctx);
  const count = tx.Exec(g.str(1));
  if (count < 0) return refused(ctx);
  const failed = g.value(0).flag ? tx.Commit() : tx.Rollback();
  if (failed !== null) return refused(ctx);
  sayNumber(ctx, count);
}

function statements(ctx: Context, name: string, g: Given): bool {
  const opened = name == "sql_other" ? ctx.Database(g.str(0)) : ctx.Database();
  if (!opened.ok) {
    refused(ctx);
    return true;
  }
  const db = opened.value!;
  if (name == "sql_query") {
    const rows = db.Query(g.str(0), values(g.value(1)), <i32>g.num(2));
    const all = list();
    for (let row = rows.next(); row !== null; row = rows.next()) all.add(row.toObj());
    if (rows.ok) sayList(ctx, all);
    else refused(ctx);
  } else if (name == "sql_exec") changed(ctx, db.Exec(g.str(0), values(g.value(1))));
  else if (name == "sql_integer") {
    const row = db.Query("SELECT $1::int8 AS n", args().num(9007199254740993)).next();
    if (row === null) refused(ctx);
    else sayNumber(ctx, row.get("n").integer);
  } else if (name == "sql_bytes") {
    const bytes = new ArrayBuffer(2);
    store<u8>(changetype<usize>(bytes), 255, 1);
    const row = db.Query("SELECT $1::bytea AS b", args().bytes(bytes)).next();
    if (row === null) refused(ctx);
    else sayText(ctx, toBase64(row.bytes(0)));
  } else if (name == "sql_transaction") transaction(ctx, db, g);
  else if (name == "sql_other") changed(ctx, db.Exec("SELECT 1"));
  else return false;
  return true;
}

function outside(ctx: Context, name: string, g: Given): bool {
  if (name == "http_request") {
    const headers = obj();
    const names = g.value(2).keys();
    for (let i = 0; i < names.length; i++) headers.str(names[i], g.value(2).str(names[i]));
    const asked = ctx.HTTPRequest(g.str(0), g.str(1), headers, String.UTF8.encode(g.str(3)));
    const a = asked.value;
    if (a === null) refused(ctx);
    else sayObj(ctx, obj().num("status", a.Status).str("header", a.Header("X-Answer")).str("body", a.Body));
  } else if (name == "http_get" || name == "http_post") {
    const asked = name == "http_get" ? ctx.HTTPGet(g.str(0)) : ctx.HTTPPost(g.str(0), g.str(1), g.str(2));
    const a = asked.value;
    if (a === null) refused(ctx);
    else sayText(ctx, a.Body);
  } else if (name == "notify_user") done(ctx, ctx.NotifyUser(I64.parseInt(g.str(0)), NewMessage(g.str(1))));
  else if (name == "notify_chat") done(ctx, ctx.NotifyChat(g.str(0), NewMessage(g.str(1))));
  else if (name == "notify_students") {
    const queued = ctx.NotifyStudents(Students().Groups(g.value(0).isNull ? [] : [g.str(0)]), NewMessage(g.str(1)));
    if (queued.ok) sayObj(ctx, obj().num("queued", queued.value.queued).num("unreachable", queued.value.unreachable));
    else refused(ctx);
  } else if (name == "publish") done(ctx, ctx.PublishEvent(g.str(0), g.value(1)));
  else if (name == "call") {
    const answer = ctx.CallPlugin("target", g.str(0), g.value(1));
    if (answer.ok) ctx.JSON(200, obj().json("result", answer.value));
    else refused(ctx);
  } else if (name == "call_raw") {
    const answer = ctx.CallPluginRaw("target", g.str(0), g.bytes(1));
    if (answer.ok) sayText(ctx, toBase64(answer.value));
    else refused(ctx);
  } else return false;
  return true;
}

/** Length and a checksum of bytes. */
function sum(bytes: ArrayBuffer): Obj {
  let total: i32 = 0;
  for (let k = 0; k < bytes.byteLength; k++) {
    const b: i32 = load<u8>(changetype<usize>(bytes) + k);
    total = (total + b * ((k % 251) + 1)) % 1000003;
  }
  return obj().num("length", bytes.byteLength).num("sum", total);
}

function files(ctx: Context, name: string, g: Given): bool {
  if (name == "file_store") sayFile(ctx, ctx.FileStore(g.str(0), g.str(1), g.str(2), g.bytes(3)));
  else if (name == "file_store_ttl")
    sayFile(ctx, ctx.FileStoreWithTTL(g.str(0), "text/plain", "document", String.UTF8.encode("short-lived"), g.num(1)));
  else if (name == "file_meta") sayFile(ctx, ctx.FileMeta(g.str(0)));
  else if (name == "file_read") {
    const part = ctx.FileRead(g.str(0), g.num(1), g.num(2));
    if (!part.ok) refused(ctx);
    else {
      const bytes = part.value.bytes;
      sayObj(ctx, obj().num("length", bytes.byteLength).num("first", load<u8>(changetype<usize>(bytes))).bool("eof", part.value.eof));
    }
  } else if (name == "file_read_all") {
    const whole = ctx.FileReadAll(g.str(0));
    if (whole.ok) sayObj(ctx, sum(whole.value));
    else refused(ctx);
  } else if (name == "file_url") {
    const url = ctx.FileURL(g.str(0));
    if (url.ok) sayBool(ctx, url.value.length > 0);
    else refused(ctx);
  } else return false;
  return true;
}

function others(ctx: Context, name: string, g: Given): bool {
  if (name == "request") request(ctx);
  else if (name == "body_bytes") sayNumber(ctx, ctx.HTTP.BodyBytes.byteLength);
  else if (name == "config") sayText(ctx, ctx.Config(g.str(0)));
  else if (name == "host_info") sayNumber(ctx, ctx.HostInfo().i64("abi"));
  else if (name == "log") {
    ctx.Log(g.str(0));
    ctx.LogError(g.str(0));
    done(ctx, null);
  } else if (name == "large") sayText(ctx, "x".repeat(<i32>g.num(0)));
  else if (name == "random") sayList(ctx, list().float(Math.random()).float(Math.random()));
  else if (name == "clock") sayNumber(ctx, Date.now());
  else return false;
  return true;
}

function run(ctx: Context): void {
  const name = ctx.HTTP.Param("case");
  const g = new Given(name == "body_bytes" ? Json.absent() : ctx.HTTP.JSON());
  if (name == "throw") throw new Error(g.str(0));
  if (name == "give_back") {
    const meta = ctx.FileMeta(g.str(0));
    if (!meta.ok) ctx.Fail(meta.error!);
    return;
  }
  while (name == "loop") {}
  if (name == "respond") {
    ctx.SetHTTPResponse(<i32>g.num(0), g.value(1).toString(), g.str(2));
    return;
  }
  if (name == "respond_bytes") {
    ctx.SetHTTPResponseBytes(200, "{}", g.bytes(0));
    return;
  }
  if (name == "silent") return;
  const isKnown = name.startsWith("kv_")
    ? keyValues(ctx, name, g)
    : name.startsWith("sql_")
    ? statements(ctx, name, g)
    : name.startsWith("file_")
    ? files(ctx, name, g)
    : others(ctx, name, g) || outside(ctx, name, g);
  if (!isKnown) ctx.JSON(404, obj().str("left_out", name));
}

function say(ctx: Context): void {
  const m = ctx.Message;
  const words = m.Args;
  const read: string[] = [];
  const given = ctx.HasFiles() ? ctx.Files() : [];
  for (let k = 0; k < given.length; k++) {
    const content = ctx.FileReadAll(given[k].ID);
    if (!content.ok) return ctx.Fail(content.error!);
    read.push(given[k].FileType + ": " + String.UTF8.decode(content.value));
  }
  const what = obj().str("text", m.Text).list("args", strings(words)).str("chat", m.ChatID).num("user", m.UserID)
    .list("files", strings(read));
  const refusal = ctx.Reply(NewMessage(what.toString()));
  if (refusal !== null) return ctx.Fail(refusal);
  if (words.length == 0) return;
  const file = ctx.FileStore(words[0], "text/plain", "document", String.UTF8.encode("in it"));
  if (!file.ok) return ctx.Fail(file.error!);
  const second = ctx.Reply(NewMessage("").File(file.value!, "Here"));
  if (second !== null) ctx.Fail(second);
}

function double(ctx: Context): void {
  ctx.Output(obj().num("doubled", ctx.Call.Value.integer * 2).str("from", ctx.Call.From));
}

function reverse(ctx: Context): void {
  const bytes = Uint8Array.wrap(ctx.Call.Bytes);
  bytes.reverse();
  ctx.OutputBytes(bytes.buffer);
}

function refuse(ctx: Context): void {
  ctx.Fail("refused by its author");
}
