import { arr, ConfigFields, Context, Json, KV, obj, Plugin, Public, StringField } from "@plugin-host/sdk";

const PREFIX = "entry:";

Plugin("guestbook", "Guestbook", "1.0.0")
  .Requires(
    KV("Keeps the entries of the guestbook")
      .WithConfig(ConfigFields([
        StringField("title", "Title shown above the entries"),
        StringField("moderator_key", "Key that allows to remove an entry").Required().Sensitive(),
      ]))
      .Build(),
  )
  .HTTP("entries", "/entries", ["GET", "POST"], entries, "Lists the entries or adds one")
  .Access(Public("Visitors read the guestbook and sign it without a login"))
  .HTTP("entry", "/entries/:id", ["GET", "DELETE"], entry, "Shows or removes one entry")
  .Access(Public("Visitors read an entry without a login; removing one needs the moderator's key"));

function error(ctx: Context, status: i32, text: string): void {
  ctx.JSON(status, obj().str("error", text));
}

function entries(ctx: Context): void {
  if (ctx.HTTP.Method == "POST") return add(ctx);
  const after = ctx.HTTP.Query("after");
  const page = ctx.KVList(PREFIX, after.length ? PREFIX + after : "", 50);
  if (!page.ok) return error(ctx, 500, page.error!);
  const items: string[] = [];
  for (let i = 0; i < page.value.keys.length; i++) {
    const value = ctx.KVGet(page.value.keys[i]);
    if (value.value !== null) items.push(value.value!);
  }
  const title = ctx.Config("title");
  const next = page.value.next;
  const answer = obj().str("title", title === null ? "Guestbook" : title!).raw("entries", arr(items));
  ctx.JSON(200, next === null ? answer.raw("next", "null") : answer.str("next", next!.slice(PREFIX.length)));
}

function add(ctx: Context): void {
  const body = Json.parseText(ctx.HTTP.Body);
  const name = body.str("name");
  const text = body.str("text");
  if (!name.length || !text.length) return error(ctx, 400, "send {\"name\": ..., \"text\": ...}");
  const id = ctx.RequestID;
  const value = obj().str("id", id).str("name", name).str("text", text).toString();
  const failed = ctx.KVSet(PREFIX + id, value);
  if (failed !== null) return error(ctx, 500, failed!);
  ctx.Log("entry " + id + " by " + name);
  ctx.SetHTTPResponse(201, '{"Content-Type":"application/json"}', value);
}

function entry(ctx: Context): void {
  const key = PREFIX + ctx.HTTP.Param("id");
  if (ctx.HTTP.Method == "DELETE") {
    const wanted = ctx.Config("moderator_key");
    if (wanted === null || ctx.HTTP.Header("x-moderator-key") != wanted!) return error(ctx, 403, "the moderator key is needed");
    const removed = ctx.KVDelete(key);
    if (!removed.ok) return error(ctx, 500, removed.error!);
    if (!removed.value) return error(ctx, 404, "there is no such entry");
    ctx.SetHTTPResponse(204, "{}", "");
    return;
  }
  const value = ctx.KVGet(key);
  if (!value.ok) return error(ctx, 500, value.error!);
  if (value.value === null) return error(ctx, 404, "there is no such entry");
  ctx.SetHTTPResponse(200, '{"Content-Type":"application/json"}', value.value!);
}
