import { Context, KV, obj, Plugin, Users } from "@plugin-host/sdk";

Plugin("template-plugin", "Template Plugin", "0.1.0")
  .Requires(KV("Counts who was greeted").Build())
  .HTTP("greet", "/greet/:name", ["GET"], greet, "Greets, and counts how often")
  .Access(Users("Users may be greeted"));

function greet(ctx: Context): void {
  const name = ctx.HTTP.Param("name");
  const times = ctx.KVIncrement("greeted:" + name);
  if (!times.ok) return ctx.Fail(times.error!);
  ctx.JSON(200, obj().str("message", "Hello, " + name + "!").num("times", times.value));
}
