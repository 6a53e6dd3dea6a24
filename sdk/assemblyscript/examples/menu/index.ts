import { ConfigFields, Context, File, NewMessage, obj, Plugin, PluginDep, StringField } from "@plugin-host/sdk";

const HOUR_MS: i64 = 3600000;

Plugin("menu", "Canteen menu", "1.0.0")
  .Requires(
    File("Sends the menu as a file, and takes pictures of dishes")
      .WithConfig(ConfigFields([
        StringField("dishes", "Dishes of today, separated by semicolons").Required(),
        StringField("place", "Where the canteen is, as the plugin weather knows it"),
      ]))
      .Build(),
  )
  .Requires(PluginDep("weather", "Tells whether it is warm enough to eat outside").Build())
  .Messenger("menu", menu, "Shows what the canteen offers today");

/** `/menu`: the dishes as text and as a file, with the temperature outside; a picture that comes along goes back as thanks. */
function menu(ctx: Context): void {
  const dishes = ctx.Config("dishes")!.split(";");
  let text = "Today in the canteen:";
  let list = "";
  for (let i = 0; i < dishes.length; i++) {
    text += "\n- " + dishes[i].trim();
    list += dishes[i].trim() + "\n";
  }
  const place = ctx.Config("place");
  if (place !== null) {
    const outside = ctx.CallPlugin("weather", "temperature", obj().str("place", place!));
    if (outside.ok) text += "\nOutside: " + outside.value.get("temperature").toString() + " C";
    else ctx.LogError("weather: " + outside.error!);
  }
  const stored = ctx.FileStoreWithTTL("menu.txt", "text/plain", "document", String.UTF8.encode(list), HOUR_MS);
  if (stored.value === null) return ctx.Fail(stored.error!);
  const message = NewMessage(text).File(stored.value!, "The menu");
  const pictures = ctx.Files();
  for (let i = 0; i < pictures.length; i++) message.File(pictures[i], "Thank you for the picture");
  const refused = ctx.Reply(message);
  if (refused !== null) ctx.Fail(refused);
}
