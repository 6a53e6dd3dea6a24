//! Slots that only one person may have each, however many ask at once: conditional writes and a counter.

use std::time::Duration;

use plugin_host::*;

plugin!(declare);

const SLOTS: u32 = 40;
const BOOKED: &str = "bookings";
/// A slot that was given up; no user has this name.
const FREE: &str = "";
const NO_END: Duration = Duration::ZERO;

fn declare() -> Plugin {
    Plugin::new("booking", "Consultation hours", "1.0.0")
        .require(kv("Keeps who has booked which slot").build())
        .trigger(
            Trigger::http("slots", "/slots", slots)
                .methods(["GET"])
                .description("Lists the slots and who has booked them"),
        )
        .trigger(
            Trigger::http("slot", "/slots/:number", change)
                .methods(["POST", "DELETE"])
                .description("Books a slot, or gives it up"),
        )
}

fn key_of(slot: u32) -> String {
    format!("slot:{slot}")
}

/// All slots with two calls of the host, however many there are.
fn slots(ctx: &Context) -> Result {
    let keys: Vec<String> = (1..=SLOTS).map(key_of).collect();
    let names = ctx.kv_get_many(&keys.iter().map(String::as_str).collect::<Vec<_>>())?;
    let mut slots = Vec::new();
    for (slot, key) in (1..=SLOTS).zip(&keys) {
        let name = names.get(key).map(|name| String::from_utf8_lossy(name).into_owned());
        slots.push(json!({ "slot": slot, "booked_by": name.filter(|name| name != FREE) }));
    }
    ctx.json(200, json!({ "booked": ctx.kv_increment(BOOKED, 0, NO_END)?, "slots": slots }))
}

fn change(ctx: &Context) -> Result {
    let number = ctx.http().param("number");
    let Some(slot) = (1..=SLOTS).find(|slot| slot.to_string() == number) else {
        return ctx.json(404, json!({ "error": format!("there are slots 1 to {SLOTS}") }));
    };
    let sent = ctx.http().json().unwrap_or(Json::Null);
    let name = sent["name"].as_str().unwrap_or("");
    if name.is_empty() {
        return ctx.json(400, json!({ "error": r#"send {"name": ...}"# }));
    }
    match ctx.http().method.as_str() {
        "DELETE" => release(ctx, slot, name),
        _ => book(ctx, slot, name),
    }
}

/// Reading the slot and then writing it would let two people in between: each of these is one step.
fn book(ctx: &Context, slot: u32, name: &str) -> Result {
    let key = key_of(slot);
    let mut claim = ctx.kv_set_if_absent(&key, name, NO_END)?;
    if claim == KvUpdate::Refused(Some(FREE.into())) {
        claim = ctx.kv_compare_and_set(&key, FREE, name, NO_END)?;
    }
    if !claim.is_written() {
        return ctx.json(409, json!({ "error": format!("slot {slot} is booked") }));
    }
    count(ctx, 1);
    ctx.json(201, json!({ "slot": slot, "booked_by": name }))
}

/// Only who has booked a slot gives it up, whatever happens at the same time.
fn release(ctx: &Context, slot: u32, name: &str) -> Result {
    if !ctx.kv_compare_and_set(&key_of(slot), name, FREE, NO_END)?.is_written() {
        return ctx.json(409, json!({ "error": format!("slot {slot} is not booked by you") }));
    }
    count(ctx, -1);
    ctx.json(200, json!({ "slot": slot, "booked_by": null }))
}

/// A booking stands even if it could not be counted.
fn count(ctx: &Context, change: i64) {
    if let Err(error) = ctx.kv_increment(BOOKED, change, NO_END) {
        ctx.log_error(&format!("counting bookings: {error}"));
    }
}
