import { Context, obj, Plugin, Public } from "@plugin-host/sdk";

Plugin("hello", "Hello", "1.0.0")
  .HTTP("greet", "/greet", ["GET", "POST"], greet, "Greets and echoes what the request brought along")
  .Access(Public("It shows nothing but what the caller sent"))
  .HTTP("greet_name", "/greet/:name", ["GET"], greet, "Greets the name in the path")
  .Access(Public("It shows nothing but what the caller sent"));

function greet(ctx: Context): void {
  const http = ctx.HTTP;
  const inPath = http.Param("name");
  const name = inPath.length ? inPath : http.Query("name");
  const answer = obj()
    .str("message", "Hello, " + (name.length ? name : "world") + "!")
    .str("method", http.Method)
    .str("path", http.Path)
    .json("query", http.Queries)
    .str("body", http.Method == "POST" ? http.Body : "");
  const auth = http.Auth;
  answer.object(
    "principal",
    auth === null ? null : obj().str("kind", auth.Kind).num("user_id", auth.UserID).num("service_key_id", auth.ServiceKeyID),
  );
  ctx.JSON(200, answer);
}
