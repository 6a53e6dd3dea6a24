//! A box of files for each user, with a page in a browser: uploads, links, notes, and files read in parts.

mod fnv;

use std::time::Duration;

use plugin_host::*;

plugin!(declare);

/// What one execution reads at most.
const WINDOW: usize = 64 << 20;

fn declare() -> Plugin {
    Plugin::new("filebox", "Filebox", "1.0.0")
        .require(file("Keeps the files users upload, and stores notes of its own").build())
        .require(kv("Remembers whose box holds which file").build())
        .trigger(
            Trigger::http("files", "/files", |ctx| in_box(ctx, if is_post(ctx) { add } else { list }))
                .methods(["GET", "POST"])
                .description("Lists the box, or puts uploaded files into it"),
        )
        .trigger(
            Trigger::http("file", "/files/:id", |ctx| in_box(ctx, if is_get(ctx) { content } else { remove }))
                .methods(["GET", "DELETE"])
                .description("Gives the content of a file, or takes it out of the box"),
        )
        .trigger(
            Trigger::http("link", "/files/:id/link", |ctx| in_box(ctx, link))
                .methods(["GET"])
                .description("Gives an address the file can be read at for some minutes"),
        )
        .trigger(
            Trigger::http("checksum", "/files/:id/checksum", |ctx| in_box(ctx, checksum))
                .methods(["GET"])
                .description("Reads a file of any size in chunks, a part of it with each call"),
        )
        .trigger(
            Trigger::http("notes", "/notes", |ctx| in_box(ctx, add_note))
                .methods(["POST"])
                .description("Stores a text as a file"),
        )
}

fn is_post(ctx: &Context) -> bool {
    ctx.http().method == "POST"
}

fn is_get(ctx: &Context) -> bool {
    ctx.http().method == "GET"
}

/// What stops a request, with its status.
struct Refusal {
    status: u16,
    reason: String,
}

impl From<HostError> for Refusal {
    fn from(error: HostError) -> Refusal {
        let status = if error.code == ErrorCode::NotFound { 404 } else { 502 };
        Refusal { status, reason: error.message }
    }
}

fn refuse<T>(status: u16, reason: impl Into<String>) -> std::result::Result<T, Refusal> {
    Err(Refusal { status, reason: reason.into() })
}

/// What a handler answers: a status with JSON, or the bytes of a file.
enum Answer {
    Json(u16, Json),
    File(Vec<u8>),
    Nothing,
}

type Answered = std::result::Result<Answer, Refusal>;

/// Lets users in alone, and runs a handler with what the keys of the user's box begin with.
fn in_box(ctx: &Context, handle: fn(&Context, &str) -> Answered) -> Result {
    let Some(user) = ctx.http().auth.as_ref().filter(|auth| auth.kind == PrincipalKind::User) else {
        return ctx.json(401, json!({ "error": "log in to have a box" }));
    };
    match handle(ctx, &format!("box:{}:", user.user_id)) {
        Ok(Answer::Json(status, value)) => ctx.json(status, value),
        Ok(Answer::Nothing) => ctx.set_http_response(204, &[], ""),
        Ok(Answer::File(bytes)) => {
            let sent = ctx.set_http_response(200, &[("Content-Type", "application/octet-stream")], bytes);
            sent.or_else(|_| {
                ctx.json(413, json!({ "error": "the file is too large to be answered whole; use its link" }))
            })
        }
        Err(refusal) => ctx.json(refusal.status, json!({ "error": refusal.reason })),
    }
}

/// The id in the path, of a file in the box. The host lets no user read what another one has uploaded, but notes are
/// the plugin's own files, and whose they are is known here alone.
fn held_file<'a>(ctx: &'a Context, own: &str) -> std::result::Result<&'a str, Refusal> {
    let id = ctx.http().param("id");
    match ctx.kv_get_bytes(&format!("{own}{id}"))? {
        Some(_) => Ok(id),
        None => refuse(404, "not found"),
    }
}

/// What the host knows of a file; None when it was deleted or its time has passed.
fn meta_of(ctx: &Context, id: &str) -> std::result::Result<Option<FileRef>, HostError> {
    match ctx.file_meta(id) {
        Err(error) if error.code == ErrorCode::NotFound => Ok(None),
        found => found.map(Some),
    }
}

fn list(ctx: &Context, own: &str) -> Answered {
    let mut files = Vec::new();
    for key in ctx.kv_list(own, "", 200)?.keys {
        match meta_of(ctx, &key[own.len()..])? {
            Some(file) => files.push(file),
            None => drop(ctx.kv_delete(&key)?),
        }
    }
    Ok(Answer::Json(200, json!({ "files": files })))
}

fn add(ctx: &Context, own: &str) -> Answered {
    let sent = ctx.http().json().unwrap_or(Json::Null);
    let one = sent.get("file_id").into_iter();
    let ids: Vec<&str> = sent["file_ids"].items().iter().chain(one).map(|id| id.as_str().unwrap_or("")).collect();
    if ids.is_empty() {
        return refuse(400, r#"send {"file_id": ...} or {"file_ids": [...]} of completed uploads"#);
    }
    let mut files = Vec::new();
    for id in ids {
        match meta_of(ctx, id)? {
            Some(file) => files.push(file),
            None => return refuse(404, format!("file {id}: not found")),
        }
    }
    for file in &files {
        ctx.kv_set(&format!("{own}{}", file.id), "")?;
    }
    Ok(Answer::Json(201, json!({ "files": files })))
}

fn content(ctx: &Context, own: &str) -> Answered {
    Ok(Answer::File(ctx.file_read_all(held_file(ctx, own)?)?))
}

fn remove(ctx: &Context, own: &str) -> Answered {
    if !ctx.kv_delete(&format!("{own}{}", ctx.http().param("id")))? {
        return refuse(404, "not found");
    }
    Ok(Answer::Nothing)
}

fn link(ctx: &Context, own: &str) -> Answered {
    Ok(Answer::Json(200, json!({ "url": ctx.file_url(held_file(ctx, own)?)? })))
}

/// A number in the query; another one when it is not there.
fn queried(ctx: &Context, name: &str, otherwise: u64) -> std::result::Result<u64, Refusal> {
    match ctx.http().query.get(name) {
        None => Ok(otherwise),
        Some(text) => text.parse().or_else(|_| refuse(400, format!("{name} \"{text}\" is no number"))),
    }
}

/// Carried on from call to call with `?offset` and `?state`.
fn checksum(ctx: &Context, own: &str) -> Answered {
    let id = held_file(ctx, own)?;
    let mut offset = queried(ctx, "offset", 0)? as usize;
    let mut state = queried(ctx, "state", fnv::START)?;
    let end = offset.saturating_add(WINDOW);
    let mut eof = false;
    while offset < end && !eof {
        let part = ctx.file_read(id, offset, 0)?;
        state = fnv::carry_on(state, &part.bytes);
        offset += part.bytes.len();
        eof = part.eof;
    }
    Ok(Answer::Json(200, json!({ "offset": offset, "state": state.to_string(), "eof": eof })))
}

fn add_note(ctx: &Context, own: &str) -> Answered {
    let sent = ctx.http().json().unwrap_or(Json::Null);
    let text = |name: &str| sent[name].as_str().unwrap_or("");
    let ttl = Duration::from_millis(sent["ttl_ms"].as_i64().and_then(|ms| ms.try_into().ok()).unwrap_or(0));
    let stored = ctx.file_store_with_ttl(text("name"), "text/plain; charset=utf-8", "document", text("text"), ttl);
    let note = stored.or_else(|error| refuse(422, error.message))?;
    ctx.kv_set(&format!("{own}{}", note.id), "")?;
    Ok(Answer::Json(201, note.into()))
}
