import { arr, Context, File, FileReader, FileRef, Json, KV, obj, Plugin } from "@plugin-host/sdk";

/** What one execution reads at most stays below the host's 64 MB. */
const WINDOW: i64 = 48 * 1024 * 1024;
const CHUNK: i32 = 1024 * 1024;

Plugin("filebox", "Filebox", "1.0.0")
  .Requires(File("Keeps the files users upload, and stores notes of its own").Build())
  .Requires(KV("Remembers whose box holds which file").Build())
  .HTTP("files", "/files", ["GET", "POST"], files, "Lists the box, or puts uploaded files into it")
  .HTTP("file", "/files/:id", ["GET", "DELETE"], file, "Gives the content of a file, or takes it out of the box")
  .HTTP("link", "/files/:id/link", ["GET"], link, "Gives an address the file can be read at for some minutes")
  .HTTP("checksum", "/files/:id/checksum", ["GET"], checksum, "Reads a file of any size in chunks, a part of it with each call")
  .HTTP("notes", "/notes", ["POST"], notes, "Stores a text as a file");

function error(ctx: Context, status: i32, text: string): void {
  ctx.JSON(status, obj().str("error", text));
}

/** The key of the user's files; null without a login, which was answered. */
function boxOf(ctx: Context): string | null {
  const auth = ctx.HTTP.Auth;
  if (auth !== null && auth.Kind == "user") return "box:" + auth.UserID.toString() + ":";
  error(ctx, 401, "log in to have a box");
  return null;
}

/**
 * Whether a box holds a file; otherwise 404 was answered. The host lets no user read what another one has uploaded, but notes are the
 * plugin's own files, and whose they are is known here alone.
 */
function holds(ctx: Context, box: string, id: string): bool {
  const found = ctx.KVGet(box + id);
  if (found.ok && found.value !== null) return true;
  error(ctx, found.ok ? 404 : 500, found.ok ? "not found" : found.error!);
  return false;
}

function files(ctx: Context): void {
  const box = boxOf(ctx);
  if (box === null) return;
  if (ctx.HTTP.Method == "POST") return add(ctx, box);
  const page = ctx.KVList(box, "", 200);
  if (!page.ok) return error(ctx, 500, page.error!);
  const items: string[] = [];
  for (let i = 0; i < page.value.keys.length; i++) {
    // What was deleted or has lapsed is not there any more.
    const meta = ctx.FileMeta(page.value.keys[i].slice(box.length));
    if (meta.ok) items.push(meta.value!.toObj().toString());
    else ctx.KVDelete(page.value.keys[i]);
  }
  ctx.JSON(200, obj().raw("files", arr(items)));
}

function add(ctx: Context, box: string): void {
  const body = Json.parseText(ctx.HTTP.Body);
  const ids = body.get("file_ids").items();
  const wanted: string[] = [];
  for (let i = 0; i < ids.length; i++) wanted.push(ids[i].text);
  if (body.has("file_id")) wanted.push(body.str("file_id"));
  if (!wanted.length) return error(ctx, 400, "send {\"file_id\": ...} or {\"file_ids\": [...]} of completed uploads");
  const refs: FileRef[] = [];
  for (let i = 0; i < wanted.length; i++) {
    const meta = ctx.FileMeta(wanted[i]);
    if (!meta.ok) return error(ctx, 404, "file " + wanted[i] + ": " + meta.error!);
    refs.push(meta.value!);
  }
  const items: string[] = [];
  for (let i = 0; i < refs.length; i++) {
    const failed = ctx.KVSet(box + refs[i].ID, "");
    if (failed !== null) return error(ctx, 500, failed!);
    items.push(refs[i].toObj().toString());
  }
  ctx.JSON(201, obj().raw("files", arr(items)));
}

function file(ctx: Context): void {
  const box = boxOf(ctx);
  if (box === null) return;
  const id = ctx.HTTP.Param("id");
  if (ctx.HTTP.Method == "DELETE") {
    const removed = ctx.KVDelete(box + id);
    if (!removed.ok) return error(ctx, 500, removed.error!);
    if (!removed.value) return error(ctx, 404, "not found");
    ctx.SetHTTPResponse(204, "{}", "");
    return;
  }
  if (!holds(ctx, box, id)) return;
  const whole = ctx.FileReadAll(id);
  if (!whole.ok) return error(ctx, whole.error! == "not found" ? 404 : 502, whole.error!);
  const failed = ctx.SetHTTPResponseBytes(200, obj().str("Content-Type", "application/octet-stream").toString(), whole.value);
  if (failed !== null) error(ctx, 413, "the file is too large to be answered whole; use its link");
}

function link(ctx: Context): void {
  const box = boxOf(ctx);
  if (box === null || !holds(ctx, box, ctx.HTTP.Param("id"))) return;
  const url = ctx.FileURL(ctx.HTTP.Param("id"));
  if (!url.ok) return error(ctx, 404, url.error!);
  ctx.JSON(200, obj().str("url", url.value));
}

/** FNV-1a over 64-bit words, carried on from call to call with `?offset` and `?state`. */
function checksum(ctx: Context): void {
  const box = boxOf(ctx);
  const id = ctx.HTTP.Param("id");
  if (box === null || !holds(ctx, box, id)) return;
  const reader = new FileReader(id, ctx.HTTP.Query("offset").length ? I64.parseInt(ctx.HTTP.Query("offset")) : 0);
  let state: u64 = ctx.HTTP.Query("state").length ? U64.parseInt(ctx.HTTP.Query("state")) : 0xcbf29ce484222325;
  const end = reader.offset + WINDOW;
  const buffer = new ArrayBuffer(CHUNK);
  const start = changetype<usize>(buffer);
  while (!reader.eof && reader.offset < end) {
    const n = reader.read(buffer);
    if (n < 0) return error(ctx, reader.error! == "not found" ? 404 : 502, reader.error!);
    let i = 0;
    for (; i + 8 <= n; i += 8) state = (state ^ load<u64>(start + i)) * 0x100000001b3;
    for (; i < n; i++) state = (state ^ <u64>load<u8>(start + i)) * 0x100000001b3;
  }
  ctx.JSON(200, obj().num("offset", reader.offset).str("state", state.toString()).bool("eof", reader.eof));
}

function notes(ctx: Context): void {
  const box = boxOf(ctx);
  if (box === null) return;
  const body = Json.parseText(ctx.HTTP.Body);
  const stored = ctx.FileStoreWithTTL(body.str("name"), "text/plain; charset=utf-8", "document", String.UTF8.encode(body.str("text")), body.i64("ttl_ms"));
  if (!stored.ok) return error(ctx, 422, stored.error!);
  const failed = ctx.KVSet(box + stored.value!.ID, "");
  if (failed !== null) return error(ctx, 500, failed!);
  ctx.JSON(201, stored.value!.toObj());
}
