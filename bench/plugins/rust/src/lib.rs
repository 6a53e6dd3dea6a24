//! The greeter of the benchmark in Rust: JSON in, JSON out.

use plugin_host::*;

plugin!(declare);

fn declare() -> Plugin {
    Plugin::new("greeter-rust", "Greeter (Rust)", "1.0.0")
        .require(kv("Counts visits").build())
        .trigger(Trigger::http("greet", "/greet", greet))
        .trigger(Trigger::http("visit", "/visit", visit))
        .trigger(Trigger::http("draw", "/draw", draw))
}

fn name_of(ctx: &Context) -> &str {
    ctx.http().query.get("name").map_or("world", String::as_str)
}

fn greet(ctx: &Context) -> Result {
    ctx.json(200, json!({ "message": format!("Hello, {}!", name_of(ctx)) }))
}

fn visit(ctx: &Context) -> Result {
    let name = name_of(ctx);
    let key = format!("visits:{name}");
    let visits = ctx.kv_get(&key)?.and_then(|text| text.parse::<i64>().ok()).unwrap_or(0) + 1;
    ctx.kv_set(&key, visits.to_string())?;
    ctx.json(200, json!({ "message": format!("Hello, {name}!"), "visits": visits }))
}

fn draw(ctx: &Context) -> Result {
    let number = || i64::from_le_bytes(random_bytes()) >> 11 & ((1 << 53) - 1);
    ctx.json(200, json!({ "message": format!("Hello, {}!", name_of(ctx)), "numbers": [number(), number()] }))
}
