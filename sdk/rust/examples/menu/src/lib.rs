//! A command of messengers: a reply with files, those that came with the command too, and a call of another plugin.

use std::time::Duration;

use plugin_host::*;

plugin!(declare);

const HOUR: Duration = Duration::from_secs(3600);

fn declare() -> Plugin {
    let fields = [
        string("dishes", "Dishes of today, separated by semicolons").required(),
        string("place", "Where the canteen is, as the plugin weather knows it"),
    ];
    Plugin::new("menu", "Canteen menu", "1.0.0")
        .require(file("Sends the menu as a file, and takes pictures of dishes").with_config(fields).build())
        .require(plugin_dep("weather", "Tells whether it is warm enough to eat outside").build())
        .trigger(Trigger::messenger("menu", menu).description("Shows what the canteen offers today"))
}

/// `/menu`: the dishes as text and as a file, and the temperature outside.
fn menu(ctx: &Context) -> Result {
    let dishes = ctx.config("dishes").unwrap_or_default();
    let dishes: Vec<&str> = dishes.split(';').map(str::trim).collect();
    let mut lines = vec!["Today in the canteen:".to_owned()];
    lines.extend(dishes.iter().map(|dish| format!("- {dish}")));
    lines.extend(outside(ctx));
    let content = format!("{}\n", dishes.join("\n"));
    let list = ctx.file_store_with_ttl("menu.txt", "text/plain", "document", content, HOUR)?;
    let message = new_message(lines.join("\n")).file(&list, "The menu");
    let pictures = ctx.files().iter();
    ctx.reply(pictures.fold(message, |message, picture| message.file(picture, "Thank you for the picture")))
}

/// A line with the temperature; none when the plugin weather cannot tell it.
fn outside(ctx: &Context) -> Option<String> {
    let place = ctx.config("place")?;
    match ctx.call_plugin("weather", "temperature", json!({ "place": place })) {
        Ok(answer) => Some(format!("Outside: {} C", answer["temperature"])),
        Err(error) => {
            ctx.log_error(&format!("weather: {error}"));
            None
        }
    }
}
