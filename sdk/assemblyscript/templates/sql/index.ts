import { args, Context, Database, list, obj, Plugin, Users } from "@plugin-host/sdk";

Plugin("template-plugin", "Template Plugin", "0.1.0")
  .Requires(Database("Reads and keeps notes").Name("notes").Build())
  .HTTP("notes", "/notes", ["GET", "POST"], notes, "Notes of the user")
  .Access(Users("Each user has notes"));

function notes(ctx: Context): void {
  const auth = ctx.HTTP.Auth;
  if (auth === null || auth.Kind != "user") return ctx.JSON(401, obj().str("error", "log in first"));
  const opened = ctx.Database("notes");
  if (!opened.ok) return ctx.Fail(opened.error!);
  const db = opened.value!;
  if (db.Exec("CREATE TABLE IF NOT EXISTS notes (user_id bigint NOT NULL, text text NOT NULL)") < 0) return ctx.Fail(db.LastError());
  if (ctx.HTTP.Method == "POST") {
    const added = db.Exec("INSERT INTO notes VALUES ($1, $2)", args().num(auth.UserID).str(ctx.HTTP.Body));
    if (added < 0) return ctx.Fail(db.LastError());
  }
  const rows = db.Query("SELECT text FROM notes WHERE user_id = $1", args().num(auth.UserID));
  const all = list();
  for (let row = rows.next(); row !== null; row = rows.next()) all.add(row.toObj());
  if (!rows.ok) return ctx.Fail(rows.error!);
  ctx.JSON(200, obj().list("notes", all));
}
