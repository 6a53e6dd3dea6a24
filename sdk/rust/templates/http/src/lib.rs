use std::time::Duration;

use plugin_host::*;

plugin!(declare);

fn declare() -> Plugin {
    Plugin::new("template-plugin", "Template Plugin", "0.1.0")
        .require(kv("Counts who was greeted").build())
        .trigger(
            Trigger::http("greet", "/greet/:name", greet)
                .methods(["GET"])
                .description("Greets, and counts how often")
                .access(Access::users("Users may be greeted")),
        )
}

fn greet(ctx: &Context) -> Result {
    let name = ctx.http().param("name");
    let times = ctx.kv_increment(&format!("greeted:{name}"), 1, Duration::ZERO)?;
    ctx.json(
        200,
        json!({ "message": format!("Hello, {name}!"), "times": times }),
    )
}
