//! Does what a test asks for, one function of the kit at a time: the same plugin is written in every kit.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plugin_host::*;

plugin!(declare);

const NO_END: Duration = Duration::ZERO;

fn declare() -> Plugin {
    Plugin::new("conformance", "Conformance", "1.0.0")
        .require(kv("Cases").with_config([string("title", "A title").required(), string("none", "Empty")]).build())
        .require(database("Cases").build())
        .require(http("Cases").build())
        .require(notify_req("Cases").build())
        .require(events_req("Cases").build())
        .require(plugin_dep("target", "Cases").build())
        .require(file("Cases").build())
        .trigger(Trigger::http("run", "/run/:case", run).methods(["GET", "POST"]))
        .trigger(Trigger::messenger("say", say).description("Says what came"))
        .function("double", double)
        .function("reverse", reverse)
        .function("refuse", refuse)
}

/// The arguments of a case; a missing one is empty.
struct Given(Json);

impl Given {
    fn str(&self, k: usize) -> &str {
        self.0[k].as_str().unwrap_or("")
    }
    fn num(&self, k: usize) -> i64 {
        self.0[k].as_i64().unwrap_or(0)
    }
    fn bin(&self, k: usize) -> Vec<u8> {
        decode(self.str(k))
    }
}

/// Base64 comes and goes as text of the tests; a plugin has no need of it.
fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut word, mut bits) = (0u32, 0);
    for digit in text.bytes().filter(|b| *b != b'=') {
        let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        word = word << 6 | digits.iter().position(|d| *d == digit).unwrap_or(0) as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
        }
    }
    bytes
}

fn b64(bytes: &[u8]) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let word = group.iter().enumerate().fold(0u32, |w, (k, b)| w | u32::from(*b) << (16 - 8 * k));
        for k in 0..4 {
            text.push(if k <= group.len() { digits[(word >> (18 - 6 * k)) as usize & 63] as char } else { '=' });
        }
    }
    text
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

fn update(done: KvUpdate) -> Json {
    match done {
        KvUpdate::Written => json!({ "written": true }),
        KvUpdate::Refused(present) => json!({ "written": false, "present": present.map(text) }),
    }
}

fn sum(bytes: &[u8]) -> Json {
    let sum = bytes.iter().enumerate().fold(0usize, |sum, (k, b)| (sum + *b as usize * (k % 251 + 1)) % 1_000_003);
    json!({ "length": bytes.len(), "sum": sum })
}

fn request(ctx: &Context) -> Json {
    let r = ctx.http();
    let auth = r
        .auth
        .as_ref()
        .map(|a| json!({ "kind": a.kind.as_str(), "user_id": a.user_id, "service_key_id": a.service_key_id }));
    json!({
        "method": &r.method,
        "path": &r.path,
        "query": &r.query,
        "query_all": &r.query_all,
        "raw_query": &r.raw_query,
        "param": r.param("case"),
        "address": &r.remote_addr,
        "header": r.header("X-Test"),
        "auth": auth,
    })
}

fn key_values(ctx: &Context, name: &str, g: &Given) -> Result<Option<Json>> {
    let key = g.str(0);
    Ok(Some(match name {
        "kv_get" => ctx.kv_get(key)?.into(),
        "kv_get_bytes" => ctx.kv_get_bytes(key)?.map(|b| b64(&b)).into(),
        "kv_get_many" => {
            let keys: Vec<&str> = g.0[0].items().iter().filter_map(Json::as_str).collect();
            let mut found = ctx.kv_get_many(&keys)?;
            keys.iter().map(|key| found.remove(*key).map(text)).collect::<Vec<_>>().into()
        }
        "kv_get_many_bytes" => {
            let keys: Vec<&str> = g.0[0].items().iter().filter_map(Json::as_str).collect();
            let mut found = ctx.kv_get_many(&keys)?;
            keys.iter().map(|key| found.remove(*key).map(|b| b64(&b))).collect::<Vec<_>>().into()
        }
        "kv_set" => {
            ctx.kv_set_with_ttl(key, g.str(1), Duration::from_secs(g.num(2) as u64))?;
            Json::Null
        }
        "kv_set_bytes" => {
            ctx.kv_set(key, g.bin(1))?;
            Json::Null
        }
        "kv_set_if_absent" => update(ctx.kv_set_if_absent(key, g.str(1), NO_END)?),
        "kv_compare_and_set" => update(ctx.kv_compare_and_set(key, g.str(1), g.str(2), NO_END)?),
        "kv_increment" => ctx.kv_increment(key, g.str(1).parse()?, NO_END)?.into(),
        "kv_delete" => ctx.kv_delete(key)?.into(),
        "kv_list" => {
            let page = ctx.kv_list(key, g.str(1), g.num(2) as u16)?;
            json!({ "keys": page.keys, "next": page.next })
        }
        _ => return Ok(None),
    }))
}

/// A value of a statement, as the tests give it.
fn value_of(value: &Json) -> Box<dyn ToSql> {
    match value {
        Json::Null => Box::new(None::<i64>),
        Json::Bool(value) => Box::new(*value),
        Json::Int(value) => Box::new(*value),
        Json::Float(value) => Box::new(*value),
        Json::String(value) => Box::new(value.clone()),
        Json::Array(values) => Box::new(values.iter().filter_map(Json::as_i64).collect::<Vec<i64>>()),
        value => Box::new(value.clone()),
    }
}

fn sql(ctx: &Context, name: &str, g: &Given) -> Result<Json> {
    let db = ctx.database(if name == "sql_other" { g.str(0) } else { "" })?;
    let owned: Vec<Box<dyn ToSql>> = g.0[1].items().iter().map(value_of).collect();
    let values: Vec<&dyn ToSql> = owned.iter().map(Box::as_ref).collect();
    Ok(match name {
        "sql_query" => {
            let rows = db.query(g.str(0), &values)?;
            rows.map(|row| Ok(row?.to_json())).collect::<Result<Vec<Json>>>()?.into()
        }
        "sql_exec" => db.exec(g.str(0), &values)?.into(),
        "sql_integer" => {
            let mut rows = db.query("SELECT $1::int8 AS n", &[&9007199254740993i64])?;
            rows.next().ok_or("no row")??.get::<i64>("n")?.into()
        }
        "sql_bytes" => {
            let mut rows = db.query("SELECT $1::bytea AS b", &[&vec![0u8, 255]])?;
            b64(&rows.next().ok_or("no row")??.get::<Vec<u8>>("b")?).into()
        }
        "sql_transaction" => {
            let transaction = db.begin()?;
            let count = transaction.exec(g.str(1), &[])?;
            if g.0[0].as_bool() == Some(true) {
                transaction.commit()?;
            } else {
                transaction.rollback()?;
            }
            count.into()
        }
        _ => db.exec("SELECT 1", &[])?.into(),
    })
}

fn files(ctx: &Context, name: &str, g: &Given) -> Result<Json> {
    let id = g.str(0);
    Ok(match name {
        "file_store" => ctx.file_store(id, g.str(1), g.str(2), g.bin(3))?.into(),
        "file_store_ttl" => {
            let ttl = Duration::from_millis(g.num(1) as u64);
            ctx.file_store_with_ttl(id, "text/plain", "document", "short-lived", ttl)?.into()
        }
        "file_meta" => ctx.file_meta(id)?.into(),
        "file_read" => {
            let part = ctx.file_read(id, g.num(1) as usize, g.num(2) as usize)?;
            json!({ "length": part.bytes.len(), "first": i32::from(part.bytes[0]), "eof": part.eof })
        }
        "file_read_all" => sum(&ctx.file_read_all(id)?),
        _ => (!ctx.file_url(id)?.is_empty()).into(),
    })
}

fn outside(ctx: &Context, name: &str, g: &Given) -> Result<Option<Json>> {
    Ok(Some(match name {
        "http_request" => {
            let order = g.0[2].members().iter().fold(HttpOrder::new(g.str(0), g.str(1)), |order, (name, value)| {
                order.header(name, value.as_str().unwrap_or(""))
            });
            let answer = ctx.http_request(order.body(g.str(3)))?;
            json!({ "status": answer.status, "header": answer.header("X-Answer"), "body": answer.text()? })
        }
        "http_get" => ctx.http_get(g.str(0))?.text()?.into(),
        "http_post" => ctx.http_post(g.str(0), g.str(1), g.str(2))?.text()?.into(),
        "notify_user" => {
            ctx.notify_user(g.str(0).parse()?, new_message(g.str(1)))?;
            Json::Null
        }
        "notify_chat" => {
            ctx.notify_chat(g.str(0), new_message(g.str(1)))?;
            Json::Null
        }
        "notify_students" => {
            let filter = students().groups(g.0[0].as_str());
            let done = ctx.notify_students(&filter, new_message(g.str(1)))?;
            json!({ "queued": done.queued, "unreachable": done.unreachable })
        }
        "publish" => {
            ctx.publish_event(g.str(0), &g.0[1])?;
            Json::Null
        }
        "call" => ctx.call_plugin("target", g.str(0), &g.0[1])?,
        "call_raw" => b64(&ctx.call_plugin_raw("target", g.str(0), g.bin(1))?).into(),
        _ => return Ok(None),
    }))
}

/// The result of a case; None for one that is left out.
fn attempt(ctx: &Context, name: &str, g: &Given) -> Result<Option<Json>> {
    match name.split('_').next() {
        Some("kv") => return key_values(ctx, name, g),
        Some("sql") => return sql(ctx, name, g).map(Some),
        Some("file") => return files(ctx, name, g).map(Some),
        _ => {}
    }
    Ok(Some(match name {
        "request" => request(ctx),
        "body_bytes" => ctx.http().body_bytes().len().into(),
        "config" => ctx.config(g.str(0)).into(),
        "host_info" => ctx.host_info()?.abi.into(),
        "log" => {
            ctx.log(g.str(0));
            ctx.log_error(g.str(0));
            Json::Null
        }
        "large" => "x".repeat(g.num(0) as usize).into(),
        "random" => json!([i64::from_le_bytes(random_bytes()), i64::from_le_bytes(random_bytes())]),
        "clock" => Json::Int(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64),
        _ => return outside(ctx, name, g),
    }))
}

fn run(ctx: &Context) -> Result {
    let name = ctx.http().param("case").to_owned();
    let g = Given(if name == "body_bytes" { Json::Null } else { ctx.http().json()? });
    match name.as_str() {
        "throw" => panic!("{}", g.str(0)),
        "give_back" => {
            ctx.file_meta(g.str(0))?;
            return Ok(());
        }
        "loop" => loop {
            std::hint::black_box(&g);
        },
        "respond" => {
            let headers: Vec<(&str, &str)> =
                g.0[1].members().iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap_or(""))).collect();
            return ctx.set_http_response(g.num(0) as u16, &headers, g.str(2));
        }
        "respond_bytes" => return ctx.set_http_response(200, &[], g.bin(0)),
        "silent" => return Ok(()),
        _ => {}
    }
    match attempt(ctx, &name, &g) {
        Ok(Some(result)) => ctx.json(200, json!({ "result": result })),
        Ok(None) => ctx.json(404, json!({ "left_out": name })),
        Err(error) => match error.downcast::<HostError>() {
            Ok(refused) => ctx.json(200, json!({ "code": refused.code.as_str(), "text": refused.message })),
            Err(other) => Err(other),
        },
    }
}

fn say(ctx: &Context) -> Result {
    let m = ctx.message();
    let mut files = Vec::new();
    for file in ctx.files() {
        let content = ctx.file_read_all(&file.id)?;
        files.push(format!("{}: {}", file.file_type, String::from_utf8_lossy(&content)));
    }
    let what = json!({
        "text": &m.text,
        "args": m.args.clone(),
        "chat": &m.chat_id,
        "user": m.user_id,
        "files": files,
    });
    ctx.reply(new_message(what.to_string()))?;
    if let Some(name) = m.args.first() {
        let file = ctx.file_store(name, "text/plain", "document", "in it")?;
        ctx.reply(new_message("").file(&file, "Here"))?;
    }
    Ok(())
}

fn double(ctx: &Context) -> Result {
    let n = ctx.call().value()?.as_i64().ok_or("a number is wanted")?;
    ctx.output(json!({ "doubled": n * 2, "from": &ctx.call().from }))
}

fn reverse(ctx: &Context) -> Result {
    let mut bytes = ctx.call().bytes();
    bytes.reverse();
    ctx.output_bytes(bytes)
}

fn refuse(_: &Context) -> Result {
    Err("refused by its author".into())
}
