import { Context, HTTPAuthInfo, KV, list, obj, Plugin, Public, quote, Users } from "@plugin-host/sdk";

const NAME_CHARS: i32 = 40;
const URL_CHARS: i32 = 2000;
/** Two keys each, of the 100 that the host gives at a time. */
const LISTED: i32 = 50;
/** Stands for a moment in the place of a link that was removed. */
const REMOVED: string = "";

/** Short addresses for long ones: users make them, everyone may follow them, and each counts how often. */
Plugin("short-links", "Short links", "1.0.0")
  .Requires(KV("Keeps the links and how often each was followed").Build())
  .HTTP("follow", "/go/:name", ["GET"], follow, "Leads to the address behind a name")
  .Access(Public("Everyone follows links; none shows who has made it"))
  .HTTP("links", "/links", ["GET", "POST"], links, "Lists the links of the caller, or makes one")
  .Access(Users("Users make links"))
  .HTTP("link", "/links/:name", ["DELETE"], remove, "Removes a link of the caller")
  .Access(Users("Users remove their own links"));

function linkKey(name: string): string {
  return "link:" + name;
}

function countKey(name: string): string {
  return "count:" + name;
}

function mineKey(user: i64, name: string): string {
  return "user:" + user.toString() + ":" + name;
}

/** A link is kept with the id of the user who has made it. */
function addressIn(link: string): string {
  return link.substring(link.indexOf(" ") + 1);
}

function error(ctx: Context, status: i32, text: string): void {
  ctx.JSON(status, obj().str("error", text));
}

/** Lower-case letters, digits and hyphens: a name that can be read out. */
function isName(name: string): bool {
  if (name.length < 2 || name.length > NAME_CHARS) return false;
  for (let k = 0; k < name.length; k++) {
    const c = name.charCodeAt(k);
    const isRight = (c >= 97 && c <= 122) || (c >= 48 && c <= 57) || c == 45;
    if (!isRight) return false;
  }
  return true;
}

/** An address of the web; others, like javascript:, would run something. What must be escaped in it is refused. */
function isAddress(url: string): bool {
  if (url.length > URL_CHARS || (!url.startsWith("https://") && !url.startsWith("http://"))) return false;
  for (let k = 0; k < url.length; k++) {
    const c = url.charCodeAt(k);
    if (c <= 32 || c >= 127 || c == 34 || c == 60 || c == 62 || c == 92) return false;
  }
  return true;
}

/** The user of a request; null when the host has let in another caller, and the answer is given then. */
function userOf(ctx: Context): HTTPAuthInfo | null {
  const auth = ctx.HTTP.Auth;
  if (auth !== null && auth.Kind == "user") return auth;
  error(ctx, 401, "log in first");
  return null;
}

function follow(ctx: Context): void {
  const name = ctx.HTTP.Param("name");
  const found = ctx.KVGet(linkKey(name));
  if (!found.ok) return ctx.Fail(found.error!);
  const link = found.value;
  if (link === null || link! == REMOVED) return error(ctx, 404, "there is no link " + name);
  // A link works even if it could not be counted.
  const counted = ctx.KVIncrement(countKey(name));
  if (!counted.ok) ctx.LogError("counting: " + counted.error!);
  const refused = ctx.SetHTTPResponse(302, '{"Location":' + quote(addressIn(link!)) + ',"Cache-Control":"no-store"}', "");
  if (refused !== null) ctx.Fail(refused);
}

function links(ctx: Context): void {
  const auth = userOf(ctx);
  if (auth === null) return;
  if (ctx.HTTP.Method == "POST") make(ctx, auth.UserID);
  else show(ctx, auth.UserID);
}

/** Of several users who want a name at once, one gets it. */
function make(ctx: Context, user: i64): void {
  const given = ctx.HTTP.JSON();
  const name = given.str("name");
  const url = given.str("url");
  if (!isName(name)) return error(ctx, 400, "a name has 2 to 40 lower-case letters, digits and hyphens");
  if (!isAddress(url)) return error(ctx, 400, "url must be an address like https://example.org/page, escaped where it must be");
  const link = user.toString() + " " + url;
  let claimed = ctx.KVSetIfAbsent(linkKey(name), link);
  while (claimed.ok && !claimed.value.written && claimed.value.present == REMOVED) {
    claimed = ctx.KVCompareAndSet(linkKey(name), REMOVED, link);
    // What stood for a removed link may have gone in between: then the name is free.
    if (claimed.ok && !claimed.value.written && claimed.value.present === null) claimed = ctx.KVSetIfAbsent(linkKey(name), link);
  }
  if (!claimed.ok) return ctx.Fail(claimed.error!);
  if (!claimed.value.written) return error(ctx, 409, "the name " + name + " is taken");
  // Of the link that had the name before.
  ctx.KVDelete(countKey(name));
  const kept = ctx.KVSet(mineKey(user, name), "");
  if (kept !== null) return ctx.Fail(kept);
  ctx.JSON(201, obj().str("name", name).str("url", url));
}

function show(ctx: Context, user: i64): void {
  const prefix = mineKey(user, "");
  const page = ctx.KVList(prefix, "", LISTED);
  if (!page.ok) return ctx.Fail(page.error!);
  const names: string[] = [];
  const keys: string[] = [];
  for (let k = 0; k < page.value.keys.length; k++) {
    const name = page.value.keys[k].substring(prefix.length);
    names.push(name);
    keys.push(linkKey(name));
    keys.push(countKey(name));
  }
  const found = ctx.KVGetMany(keys);
  if (!found.ok) return ctx.Fail(found.error!);
  const items = list();
  for (let k = 0; k < names.length; k++) {
    const link = found.value[2 * k];
    const count = found.value[2 * k + 1];
    // One that was removed may be another user's by now.
    if (link !== null && link!.startsWith(user.toString() + " "))
      items.add(obj().str("name", names[k]).str("url", addressIn(link!)).num("followed", count === null ? 0 : I64.parseInt(count!)));
  }
  ctx.JSON(200, obj().list("links", items).bool("more", page.value.next !== null));
}

function remove(ctx: Context): void {
  const auth = userOf(ctx);
  if (auth === null) return;
  const name = ctx.HTTP.Param("name");
  const found = ctx.KVGet(linkKey(name));
  if (!found.ok) return ctx.Fail(found.error!);
  const link = found.value;
  if (link === null || !link!.startsWith(auth.UserID.toString() + " ")) return error(ctx, 404, "you have no link " + name);
  ctx.KVDelete(countKey(name));
  ctx.KVDelete(mineKey(auth.UserID, name));
  // Only this very link: after a removal by another request the name may be that of another link.
  const gone = ctx.KVCompareAndSet(linkKey(name), link!, REMOVED, 1);
  if (!gone.ok) return ctx.Fail(gone.error!);
  if (!gone.value.written) {
    const now = gone.value.present;
    if (now !== null && now!.startsWith(auth.UserID.toString() + " ")) ctx.KVSet(mineKey(auth.UserID, name), "");
    return error(ctx, 404, "the link " + name + " was removed meanwhile");
  }
  ctx.SetHTTPResponse(204, "{}", "");
}
