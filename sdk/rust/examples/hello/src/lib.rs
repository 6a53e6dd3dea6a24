//! Two triggers of one handler, without any permission: it answers with what the request brought along.

use plugin_host::*;

plugin!(declare);

fn declare() -> Plugin {
    Plugin::new("hello", "Hello", "1.0.0")
        .trigger(
            Trigger::http("greet", "/greet", greet)
                .methods(["GET", "POST"])
                .description("Greets and echoes what the request brought along")
                .access(Access::public("It shows nothing but what the caller sent")),
        )
        .trigger(
            Trigger::http("greet_name", "/greet/:name", greet)
                .methods(["GET"])
                .description("Greets the name in the path")
                .access(Access::public("It shows nothing but what the caller sent")),
        )
}

fn greet(ctx: &Context) -> Result {
    let request = ctx.http();
    let named = [request.params.get("name"), request.query.get("name")];
    let name = named.into_iter().flatten().find(|name| !name.is_empty());
    let principal = request.auth.as_ref().map(
        |auth| json!({ "kind": auth.kind.as_str(), "user_id": auth.user_id, "service_key_id": auth.service_key_id }),
    );
    let body = if request.method == "POST" { request.body()? } else { String::new() };
    ctx.json(
        200,
        json!({
            "message": format!("Hello, {}!", name.map_or("world", String::as_str)),
            "method": &request.method,
            "path": &request.path,
            "query": &request.query,
            "body": body,
            "principal": principal,
        }),
    )
}
