import {
  args, ConfigFields, Context, Database, EventsReq, File, HTTP, KV, list, NewMessage, NotifyReq, obj, Plugin, PluginDep,
  Public, ServiceKeys, StringField, Students, Users, UsersAndServiceKeys,
} from "@plugin-host/sdk";

const HOUR_MS: i64 = 3600000;

/** One handler for each recipe of docs/authors.md. */
Plugin("recipes", "Recipes", "1.0.0")
  .Requires(KV("Remembers notes, seats and visits").Build())
  .Requires(Database("Reads and writes grades").Name("grades").Build())
  .Requires(
    HTTP("Asks the weather service")
      .WithConfig(ConfigFields([
        StringField("service", "Address of the weather service").Required(),
        StringField("key", "Key of the weather service").Required().Sensitive(),
      ]))
      .Build(),
  )
  .Requires(File("Reads what users upload, and stores reports").Build())
  .Requires(NotifyReq("Reminds users and writes to study groups").Build())
  .Requires(EventsReq("Says when a book was returned").Build())
  .Requires(PluginDep("weather", "Asks for the temperature").Build())
  .Function("free", free)
  .HTTP("greet", "/greet/:name", ["GET"], greet)
  .Access(Public("It shows what the caller sent"))
  .HTTP("order", "/orders", ["POST"], order)
  .HTTP("table", "/table", ["GET"], table)
  .HTTP("me", "/me", ["GET"], me)
  .Access(UsersAndServiceKeys("Each caller sees who it is"))
  .HTTP("note", "/notes/:name", ["GET", "PUT", "DELETE"], note)
  .HTTP("visit", "/visits", ["POST"], visit)
  .HTTP("claim", "/seats/:seat", ["POST"], claim)
  .Access(Users("Users take seats"))
  .HTTP("release", "/seats/:seat/release", ["POST"], release)
  .Access(Users("Users give back their seats"))
  .HTTP("seats", "/seats", ["GET"], seats)
  .HTTP("grades", "/grades/:student", ["GET"], grades)
  .HTTP("enter", "/grades", ["POST"], enter)
  .Access(ServiceKeys("The register enters grades"))
  .HTTP("weather", "/weather/:place", ["GET"], weather)
  .HTTP("lines", "/lines", ["POST"], lines)
  .Access(Users("Users have their files counted"))
  .HTTP("report", "/reports", ["POST"], report)
  .Access(Users("Users store reports"))
  .Messenger("dishes", dishes, "The dishes of a day")
  .HTTP("remind", "/reminders", ["POST"], remind)
  .Access(ServiceKeys("The library reminds its readers"))
  .HTTP("announce", "/announcements", ["POST"], announce)
  .Access(Users("Deans write to groups").Policy('has_role("dean")'))
  .HTTP("returned", "/returned/:book", ["POST"], returned)
  .HTTP("outside", "/outside/:place", ["GET"], outside);

function refuse(ctx: Context, status: i32, why: string): void {
  ctx.JSON(status, obj().str("error", why));
}

function greet(ctx: Context): void {
  const word = ctx.HTTP.Query("word");
  ctx.JSON(200, obj().str("message", (word.length ? word : "Hello") + ", " + ctx.HTTP.Param("name") + "!"));
}

function order(ctx: Context): void {
  const dish = ctx.HTTP.JSON().str("dish");
  if (!dish.length) return refuse(ctx, 400, 'send {"dish": ...}');
  ctx.JSON(201, obj().str("dish", dish));
}

function table(ctx: Context): void {
  const headers = obj().str("Content-Type", "text/csv").str("Content-Disposition", 'attachment; filename="seats.csv"');
  const refused = ctx.SetHTTPResponse(200, headers.toString(), "seat,name\n1,Ada\n");
  if (refused !== null) ctx.Fail(refused);
}

function me(ctx: Context): void {
  const auth = ctx.HTTP.Auth;
  if (auth === null) return refuse(ctx, 401, "log in first");
  ctx.JSON(200, obj().str("kind", auth.Kind).num("id", auth.Kind == "user" ? auth.UserID : auth.ServiceKeyID));
}

function note(ctx: Context): void {
  const key = "note:" + ctx.HTTP.Param("name");
  if (ctx.HTTP.Method == "PUT") {
    const refused = ctx.KVSet(key, ctx.HTTP.Body, 3600);
    if (refused !== null) return ctx.Fail(refused);
  }
  const text = ctx.KVGet(key);
  if (!text.ok) return ctx.Fail(text.error!);
  if (text.value === null) return refuse(ctx, 404, "there is no such note");
  if (ctx.HTTP.Method == "DELETE") {
    const removed = ctx.KVDelete(key);
    if (!removed.ok) return ctx.Fail(removed.error!);
  }
  ctx.JSON(200, obj().str("text", text.value!));
}

function visit(ctx: Context): void {
  const visits = ctx.KVIncrement("visits");
  if (!visits.ok) return ctx.Fail(visits.error!);
  ctx.JSON(200, obj().num("visits", visits.value));
}

function claim(ctx: Context): void {
  const auth = ctx.HTTP.Auth;
  if (auth === null || auth.Kind != "user") return refuse(ctx, 401, "log in first");
  const key = "seat:" + ctx.HTTP.Param("seat");
  const user = auth.UserID.toString();
  let claimed = ctx.KVSetIfAbsent(key, user);
  if (claimed.ok && !claimed.value.written && claimed.value.present == "") claimed = ctx.KVCompareAndSet(key, "", user);
  if (!claimed.ok) return ctx.Fail(claimed.error!);
  if (!claimed.value.written) return refuse(ctx, 409, "the seat is taken");
  ctx.JSON(201, obj().str("user", user));
}

function release(ctx: Context): void {
  const auth = ctx.HTTP.Auth;
  if (auth === null || auth.Kind != "user") return refuse(ctx, 401, "log in first");
  const released = ctx.KVCompareAndSet("seat:" + ctx.HTTP.Param("seat"), auth.UserID.toString(), "");
  if (!released.ok) return ctx.Fail(released.error!);
  if (!released.value.written) return refuse(ctx, 409, "the seat is not yours");
  const refused = ctx.SetHTTPResponse(204, "{}", "");
  if (refused !== null) ctx.Fail(refused);
}

function seats(ctx: Context): void {
  const page = ctx.KVList("seat:", ctx.HTTP.Query("after"), 50);
  if (!page.ok) return ctx.Fail(page.error!);
  const users = ctx.KVGetMany(page.value.keys);
  if (!users.ok) return ctx.Fail(users.error!);
  const found = list();
  for (let k = 0; k < page.value.keys.length; k++) {
    const user = users.value[k];
    found.add(obj().str("key", page.value.keys[k]).str("user", user === null ? "" : user!));
  }
  const next = page.value.next;
  ctx.JSON(200, obj().list("seats", found).str("next", next === null ? "" : next!));
}

function grades(ctx: Context): void {
  const student = I64.parseInt(ctx.HTTP.Param("student"));
  if (student.toString() != ctx.HTTP.Param("student")) return refuse(ctx, 404, "there is no such student");
  const db = ctx.Database("grades");
  if (!db.ok) return ctx.Fail(db.error!);
  const statement = "SELECT course, grade FROM grades WHERE student = $1 ORDER BY course";
  const rows = db.value!.Query(statement, args().num(student));
  const found = list();
  for (let row = rows.next(); row !== null; row = rows.next()) found.add(row.toObj());
  if (!rows.ok) return ctx.Fail(rows.error!);
  ctx.JSON(200, obj().list("grades", found));
}

function enter(ctx: Context): void {
  const sent = ctx.HTTP.JSON();
  const db = ctx.Database("grades");
  if (!db.ok) return ctx.Fail(db.error!);
  const tx = db.value!.Begin();
  if (tx === null) return ctx.Fail(db.value!.LastError());
  const made = "CREATE TABLE IF NOT EXISTS grades (student bigint, course text, grade int)";
  if (tx.Exec(made, args()) < 0) return ctx.Fail(tx.LastError());
  const courses = sent.get("courses").items();
  for (let k = 0; k < courses.length; k++) {
    const values = args().num(sent.i64("student")).str(courses[k].text);
    if (tx.Exec("INSERT INTO grades VALUES ($1, $2, 5)", values) < 0) return ctx.Fail(tx.LastError());
  }
  const failed = tx.Commit();
  if (failed !== null) return ctx.Fail(failed);
  ctx.JSON(201, obj().num("entered", courses.length));
}

function weather(ctx: Context): void {
  const url = ctx.Config("service")! + "/current?place=" + encodeURIComponent(ctx.HTTP.Param("place"));
  const headers = obj().str("authorization", "Bearer " + ctx.Config("key")!);
  const asked = ctx.HTTPRequest("GET", url, headers, new ArrayBuffer(0), 2000);
  if (!asked.ok) return ctx.Fail(asked.error!);
  const answer = asked.value!;
  if (answer.Status != 200) return refuse(ctx, 502, "the weather service answered " + answer.Status.toString());
  ctx.JSON(200, answer.JSON());
}

function lines(ctx: Context): void {
  const id = ctx.HTTP.JSON().str("file_id");
  const meta = ctx.FileMeta(id);
  if (!meta.ok) return ctx.Fail(meta.error!);
  let count = 0;
  let offset: i64 = 0;
  for (let end: bool = false; !end; ) {
    const part = ctx.FileRead(id, offset);
    if (!part.ok) return ctx.Fail(part.error!);
    const bytes = Uint8Array.wrap(part.value.bytes);
    for (let k = 0; k < bytes.length; k++) if (bytes[k] == 10) count++;
    offset += bytes.length;
    end = part.value.eof;
  }
  ctx.JSON(200, obj().str("name", meta.value!.Name).num("lines", count));
}

function report(ctx: Context): void {
  const stored = ctx.FileStoreWithTTL("seats.txt", "text/plain", "document", ctx.HTTP.BodyBytes, HOUR_MS);
  if (!stored.ok) return ctx.Fail(stored.error!);
  const file = stored.value!;
  const link = ctx.FileURL(file.ID);
  if (!link.ok) return ctx.Fail(link.error!);
  ctx.JSON(201, obj().str("id", file.ID).str("url", link.value!));
}

function dishes(ctx: Context): void {
  const given = ctx.Message.Args;
  const soup = String.UTF8.encode("Soup\n");
  const stored = ctx.FileStoreWithTTL("dishes.txt", "text/plain", "document", soup, HOUR_MS);
  if (!stored.ok) return ctx.Fail(stored.error!);
  const photos = ctx.Files();
  for (let k = 0; k < photos.length; k++)
    ctx.Log(photos[k].Name + " came along, " + photos[k].Size.toString() + " bytes");
  const day = given.length > 0 ? given[0] : "today";
  const refused = ctx.Reply(NewMessage("The dishes of " + day).File(stored.value!, "Dishes"));
  if (refused !== null) ctx.Fail(refused);
}

function remind(ctx: Context): void {
  const refused = ctx.NotifyUser(ctx.HTTP.JSON().i64("reader"), NewMessage("Your book is due"));
  if (refused !== null) return ctx.Fail(refused);
  const failed = ctx.SetHTTPResponse(202, "{}", "");
  if (failed !== null) ctx.Fail(failed);
}

function announce(ctx: Context): void {
  const sent = ctx.HTTP.JSON();
  const students = Students().Groups([sent.str("group")]);
  const queued = ctx.NotifyStudents(students, NewMessage(sent.str("text")));
  if (!queued.ok) return ctx.Fail(queued.error!);
  ctx.JSON(202, obj().num("queued", queued.value.queued).num("unreachable", queued.value.unreachable));
}

function returned(ctx: Context): void {
  const refused = ctx.PublishEvent("book.returned", obj().str("book", ctx.HTTP.Param("book")));
  if (refused !== null) return ctx.Fail(refused);
  const failed = ctx.SetHTTPResponse(202, "{}", "");
  if (failed !== null) ctx.Fail(failed);
}

function outside(ctx: Context): void {
  const answer = ctx.CallPlugin("weather", "temperature", obj().str("place", ctx.HTTP.Param("place")));
  if (answer.ok) return ctx.JSON(200, answer.value);
  ctx.LogError("weather: " + answer.error!);
  refuse(ctx, 503, answer.code);
}

function free(ctx: Context): void {
  const name = ctx.KVGet("seat:" + ctx.Call.Value.i64("seat").toString());
  if (!name.ok) return ctx.Fail(name.error!);
  ctx.Output(obj().bool("free", name.value === null));
}
