//! Entries in the key-value store, listed page by page; a title and a secret key from the configuration.

use plugin_host::*;

plugin!(declare);

const PREFIX: &str = "entry:";
const PAGE: u16 = 50;

fn declare() -> Plugin {
    let fields = [
        string("title", "Title shown above the entries"),
        string("moderator_key", "Key that allows to remove an entry").required().sensitive(),
    ];
    Plugin::new("guestbook", "Guestbook", "1.0.0")
        .require(kv("Keeps the entries of the guestbook").with_config(fields).build())
        .trigger(
            Trigger::http("entries", "/entries", entries)
                .methods(["GET", "POST"])
                .description("Lists the entries or adds one")
                .access(Access::public("Visitors read the guestbook and sign it without a login")),
        )
        .trigger(
            Trigger::http("entry", "/entries/:id", entry)
                .methods(["GET", "DELETE"])
                .description("Shows or removes one entry")
                .access(Access::public(
                    "Visitors read an entry without a login; removing one needs the moderator's key",
                )),
        )
}

fn refuse(ctx: &Context, status: u16, reason: &str) -> Result {
    ctx.json(status, json!({ "error": reason }))
}

fn entries(ctx: &Context) -> Result {
    match ctx.http().method.as_str() {
        "POST" => add(ctx),
        _ => list(ctx),
    }
}

fn list(ctx: &Context) -> Result {
    let after = ctx.http().query.get("after").map(|after| format!("{PREFIX}{after}")).unwrap_or_default();
    let page = ctx.kv_list(PREFIX, &after, PAGE)?;
    let mut entries = Vec::new();
    for key in &page.keys {
        // An entry may be removed between the two calls.
        if let Some(entry) = ctx.kv_get(key)? {
            entries.push(Json::parse(&entry)?);
        }
    }
    let title = ctx.config("title").unwrap_or_else(|| "Guestbook".to_owned());
    let next = page.next.as_deref().and_then(|key| key.strip_prefix(PREFIX));
    ctx.json(200, json!({ "title": title, "entries": entries, "next": next }))
}

fn add(ctx: &Context) -> Result {
    let sent = ctx.http().json().unwrap_or(Json::Null);
    let text = |name: &str| sent[name].as_str().filter(|text| !text.is_empty());
    let (Some(name), Some(words)) = (text("name"), text("text")) else {
        return refuse(ctx, 400, r#"send {"name": ..., "text": ...}"#);
    };
    let entry = json!({ "id": &ctx.request_id, "name": name, "text": words });
    ctx.kv_set(&format!("{PREFIX}{}", ctx.request_id), entry.to_string())?;
    ctx.log(&format!("entry {} by {name}", ctx.request_id));
    ctx.json(201, entry)
}

fn entry(ctx: &Context) -> Result {
    let key = format!("{PREFIX}{}", ctx.http().param("id"));
    match ctx.http().method.as_str() {
        "DELETE" => remove(ctx, &key),
        _ => show(ctx, &key),
    }
}

fn show(ctx: &Context, key: &str) -> Result {
    match ctx.kv_get_bytes(key)? {
        Some(entry) => ctx.set_http_response(200, &[("Content-Type", "application/json")], entry),
        None => refuse(ctx, 404, "there is no such entry"),
    }
}

fn remove(ctx: &Context, key: &str) -> Result {
    if ctx.http().header("X-Moderator-Key") != ctx.config("moderator_key").as_deref() {
        return refuse(ctx, 403, "the moderator key is needed");
    }
    if !ctx.kv_delete(key)? {
        return refuse(ctx, 404, "there is no such entry");
    }
    ctx.set_http_response(204, &[], "")
}
