import { Context, File, obj, Plugin, Users } from "@plugin-host/sdk";

Plugin("template-plugin", "Template Plugin", "0.1.0")
  .Requires(File("Reads the files that are handed in").Build())
  .HTTP("count", "/lines", ["POST"], count, "Counts the lines of an uploaded file")
  .Access(Users("Users may have their files counted"));

/** Gets `{"file_id": "..."}`, the id of a file that was uploaded through `/api/files/`. */
function count(ctx: Context): void {
  const id = ctx.HTTP.JSON().str("file_id");
  const meta = ctx.FileMeta(id);
  if (meta.code == "not_found") return ctx.JSON(404, obj().str("error", "there is no such file"));
  if (!meta.ok) return ctx.Fail(meta.error!);
  const content = ctx.FileReadAll(id);
  if (!content.ok) return ctx.Fail(content.error!);
  const lines = String.UTF8.decode(content.value).split("\n").length;
  ctx.JSON(200, obj().str("name", meta.value!.Name).num("lines", lines));
}
