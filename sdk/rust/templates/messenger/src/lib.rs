use plugin_host::*;

plugin!(declare);

fn declare() -> Plugin {
    Plugin::new("template-plugin", "Template Plugin", "0.1.0")
        .require(file("Sends the menu as a file").build())
        .trigger(Trigger::messenger("menu", menu).description("The menu of a day"))
}

fn menu(ctx: &Context) -> Result {
    let day = ctx.message().args.first().map_or("today", String::as_str);
    let file = ctx.file_store(
        "menu.txt",
        "text/plain",
        "document",
        format!("Menu of {day}: soup"),
    )?;
    ctx.reply(new_message(format!("Here is the menu of {day}.")).file(&file, "Menu"))
}
