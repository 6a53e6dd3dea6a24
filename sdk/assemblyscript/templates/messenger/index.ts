import { Context, File, NewMessage, Plugin } from "@plugin-host/sdk";

Plugin("template-plugin", "Template Plugin", "0.1.0")
  .Requires(File("Sends the menu as a file").Build())
  .Messenger("menu", menu, "The menu of a day");

function menu(ctx: Context): void {
  const words = ctx.Message.Args;
  const day = words.length > 0 ? words[0] : "today";
  const text = String.UTF8.encode("Menu of " + day + ": soup");
  const file = ctx.FileStore("menu.txt", "text/plain", "document", text);
  if (!file.ok) return ctx.Fail(file.error!);
  const refused = ctx.Reply(NewMessage("Here is the menu of " + day + ".").File(file.value!, "Menu"));
  if (refused !== null) ctx.Fail(refused);
}
