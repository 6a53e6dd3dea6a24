import { args, arr, Connection, Context, Database, Json, obj, Plugin } from "@plugin-host/sdk";

/**
 * Grades in a database of the university. It expects
 * CREATE TABLE grades (student bigint, course text, grade int CHECK (grade BETWEEN 2 AND 5), PRIMARY KEY (student, course));
 */
Plugin("grades", "Grades", "1.0.0")
  .Requires(Database("Reads and writes the grades of students").Name("grades").Build())
  .Function("average", average)
  .HTTP("grades", "/students/:id", ["GET", "PUT"], grades, "Shows a student's grades, or takes several over at once");

function error(ctx: Context, status: i32, text: string): void {
  ctx.JSON(status, obj().str("error", text));
}

function grades(ctx: Context): void {
  const student = I64.parseInt(ctx.HTTP.Param("id"));
  if (student <= 0) return error(ctx, 400, "the student's id must be a number above 0");
  const opened = ctx.Database("grades");
  if (opened.value === null) return error(ctx, 503, opened.error!);
  const db = opened.value!;
  if (ctx.HTTP.Method == "PUT") return put(ctx, db, student);
  const rows = db.Query("SELECT course, grade FROM grades WHERE student = $1 ORDER BY course", args().num(student), 100);
  const list: string[] = [];
  for (let row = rows.next(); row !== null; row = rows.next())
    list.push(obj().str("course", row.str(0)).num("grade", row.num(1)).toString());
  if (!rows.ok) return error(ctx, 500, rows.error!);
  ctx.JSON(200, obj().num("student", student).raw("grades", arr(list)));
}

/** For other plugins: the average of a student, {"student": id} -> {"average": "4.50"} or null. */
function average(ctx: Context): void {
  const opened = ctx.Database("grades");
  if (opened.value === null) return ctx.Fail(opened.error!);
  const rows = opened.value!.Query("SELECT round(avg(grade), 2) FROM grades WHERE student = $1", args().num(ctx.Call.Value.i64("student")));
  const row = rows.next();
  if (row === null) return ctx.Fail(rows.ok ? "no answer" : rows.error!);
  ctx.Output(row.isNull(0) ? obj().raw("average", "null") : obj().str("average", row.str(0)));
}

/** All of them or none. */
function put(ctx: Context, db: Connection, student: i64): void {
  const given = Json.parseText(ctx.HTTP.Body).items();
  if (given.length == 0) return error(ctx, 400, 'send [{"course": ..., "grade": 2 to 5}]');
  const tx = db.Begin();
  if (tx === null) return error(ctx, 503, db.LastError());
  for (let k = 0; k < given.length; k++) {
    const changed = tx.Exec(
      "INSERT INTO grades VALUES ($1, $2, $3) ON CONFLICT (student, course) DO UPDATE SET grade = excluded.grade",
      args().num(student).str(given[k].str("course")).num(given[k].i64("grade")),
    );
    if (changed < 0) {
      const why = tx.LastError();
      tx.Rollback();
      return error(ctx, why.startsWith("23") ? 422 : 500, why);
    }
  }
  const failed = tx.Commit();
  if (failed !== null) return error(ctx, 500, failed);
  ctx.JSON(200, obj().num("student", student).num("taken", given.length));
}
