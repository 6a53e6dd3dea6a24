//! One handler for each recipe of docs/authors.md.

use std::time::Duration;

use plugin_host::*;

plugin!(declare);

const HOUR: Duration = Duration::from_secs(3600);

fn declare() -> Plugin {
    Plugin::new("recipes", "Recipes", "1.0.0")
        .require(kv("Remembers notes, seats and visits"))
        .require(database("Reads and writes grades").name("grades"))
        .require(http("Asks the weather service").with_config([
            string("service", "Address of the weather service").required(),
            string("key", "Key of the weather service").required().sensitive(),
        ]))
        .require(file("Reads what users upload, and stores reports"))
        .require(notify_req("Reminds users and writes to study groups"))
        .require(events_req("Says when a book was returned"))
        .require(plugin_dep("weather", "Asks for the temperature"))
        .function("free", free)
        .trigger(Trigger::http("greet", "/greet/:name", greet).access(Access::public("It shows what the caller sent")))
        .trigger(Trigger::http("order", "/orders", order).methods(["POST"]))
        .trigger(Trigger::http("table", "/table", table))
        .trigger(Trigger::http("me", "/me", me).access(Access::users_and_service_keys("Each caller sees who it is")))
        .trigger(Trigger::http("note", "/notes/:name", note).methods(["GET", "PUT", "DELETE"]))
        .trigger(Trigger::http("visit", "/visits", visit).methods(["POST"]))
        .trigger(
            Trigger::http("claim", "/seats/:seat", claim)
                .methods(["POST"])
                .access(Access::users("Users take seats")),
        )
        .trigger(
            Trigger::http("release", "/seats/:seat/release", release)
                .methods(["POST"])
                .access(Access::users("Users give back their seats")),
        )
        .trigger(Trigger::http("seats", "/seats", seats))
        .trigger(Trigger::http("grades", "/grades/:student", grades))
        .trigger(
            Trigger::http("enter", "/grades", enter)
                .methods(["POST"])
                .access(Access::service_keys("The register enters grades")),
        )
        .trigger(Trigger::http("weather", "/weather/:place", weather))
        .trigger(
            Trigger::http("lines", "/lines", lines)
                .methods(["POST"])
                .access(Access::users("Users have their files counted")),
        )
        .trigger(
            Trigger::http("report", "/reports", report)
                .methods(["POST"])
                .access(Access::users("Users store reports")),
        )
        .trigger(Trigger::messenger("dishes", dishes).description("The dishes of a day"))
        .trigger(
            Trigger::http("remind", "/reminders", remind)
                .methods(["POST"])
                .access(Access::service_keys("The library reminds its readers")),
        )
        .trigger(
            Trigger::http("announce", "/announcements", announce)
                .methods(["POST"])
                .access(Access::users("Deans write to groups").with_policy("has_role(\"dean\")")),
        )
        .trigger(Trigger::http("returned", "/returned/:book", returned).methods(["POST"]))
        .trigger(Trigger::http("outside", "/outside/:place", outside))
}

fn greet(ctx: &Context) -> Result {
    let word = ctx.http().query.get("word").map_or("Hello", String::as_str);
    ctx.json(200, json!({ "message": format!("{word}, {}!", ctx.http().param("name")) }))
}

fn order(ctx: &Context) -> Result {
    let sent = ctx.http().json().unwrap_or(Json::Null);
    match sent["dish"].as_str() {
        Some(dish) if !dish.is_empty() => ctx.json(201, json!({ "dish": dish })),
        _ => ctx.json(400, json!({ "error": r#"send {"dish": ...}"# })),
    }
}

fn table(ctx: &Context) -> Result {
    let headers = [("Content-Type", "text/csv"), ("Content-Disposition", r#"attachment; filename="seats.csv""#)];
    ctx.set_http_response(200, &headers, "seat,name\n1,Ada\n")?;
    Ok(())
}

fn me(ctx: &Context) -> Result {
    let Some(auth) = &ctx.http().auth else {
        return ctx.json(401, json!({ "error": "log in first" }));
    };
    match auth.kind {
        PrincipalKind::User => ctx.json(200, json!({ "kind": "user", "id": auth.user_id })),
        PrincipalKind::Service => ctx.json(200, json!({ "kind": "service", "id": auth.service_key_id })),
    }
}

fn note(ctx: &Context) -> Result {
    let key = format!("note:{}", ctx.http().param("name"));
    if ctx.http().method == "PUT" {
        ctx.kv_set_with_ttl(&key, ctx.http().body()?, HOUR)?;
    }
    let Some(text) = ctx.kv_get(&key)? else {
        return ctx.json(404, json!({ "error": "there is no such note" }));
    };
    if ctx.http().method == "DELETE" {
        ctx.kv_delete(&key)?;
    }
    ctx.json(200, json!({ "text": text }))
}

fn visit(ctx: &Context) -> Result {
    ctx.json(200, json!({ "visits": ctx.kv_increment("visits", 1, Duration::ZERO)? }))
}

fn claim(ctx: &Context) -> Result {
    let Some(auth) = ctx.http().auth.as_ref().filter(|auth| auth.kind == PrincipalKind::User) else {
        return ctx.json(401, json!({ "error": "log in first" }));
    };
    let (key, user) = (format!("seat:{}", ctx.http().param("seat")), auth.user_id.to_string());
    let mut claimed = ctx.kv_set_if_absent(&key, &user, Duration::ZERO)?;
    if claimed == KvUpdate::Refused(Some(Vec::new())) {
        claimed = ctx.kv_compare_and_set(&key, "", &user, Duration::ZERO)?;
    }
    if !claimed.is_written() {
        return ctx.json(409, json!({ "error": "the seat is taken" }));
    }
    ctx.json(201, json!({ "user": user }))
}

fn release(ctx: &Context) -> Result {
    let Some(auth) = ctx.http().auth.as_ref().filter(|auth| auth.kind == PrincipalKind::User) else {
        return ctx.json(401, json!({ "error": "log in first" }));
    };
    let (key, user) = (format!("seat:{}", ctx.http().param("seat")), auth.user_id.to_string());
    if !ctx.kv_compare_and_set(&key, &user, "", Duration::ZERO)?.is_written() {
        return ctx.json(409, json!({ "error": "the seat is not yours" }));
    }
    ctx.set_http_response(204, &[], "")?;
    Ok(())
}

fn seats(ctx: &Context) -> Result {
    let page = ctx.kv_list("seat:", ctx.http().query.get("after").map_or("", String::as_str), 50)?;
    let users = ctx.kv_get_many(&page.keys.iter().map(String::as_str).collect::<Vec<_>>())?;
    let mut list = Vec::new();
    for key in &page.keys {
        let user = users.get(key).cloned().unwrap_or_default();
        list.push(json!({ "key": key, "user": String::from_utf8(user)? }));
    }
    ctx.json(200, json!({ "seats": list, "next": page.next.unwrap_or_default() }))
}

fn grades(ctx: &Context) -> Result {
    let Ok(student) = ctx.http().param("student").parse::<i64>() else {
        return ctx.json(404, json!({ "error": "there is no such student" }));
    };
    let mut list = Vec::new();
    let db = ctx.database("grades")?;
    for row in db.query("SELECT course, grade FROM grades WHERE student = $1 ORDER BY course", &[&student])? {
        list.push(row?.to_json());
    }
    ctx.json(200, json!({ "grades": list }))
}

fn enter(ctx: &Context) -> Result {
    let sent = ctx.http().json()?;
    let db = ctx.database("grades")?;
    let tx = db.begin()?;
    tx.exec("CREATE TABLE IF NOT EXISTS grades (student bigint, course text, grade int)", &[])?;
    for course in sent["courses"].items() {
        tx.exec("INSERT INTO grades VALUES ($1, $2, 5)", &[&sent["student"].as_i64(), &course.as_str()])?;
    }
    tx.commit()?;
    ctx.json(201, json!({ "entered": sent["courses"].items().len() }))
}

fn weather(ctx: &Context) -> Result {
    let (service, key) = (ctx.config("service").unwrap_or_default(), ctx.config("key").unwrap_or_default());
    let url = format!("{service}/current?place={}", url_encode(ctx.http().param("place")));
    let order = HttpOrder::new("GET", &url).header("authorization", &format!("Bearer {key}"));
    let answer = ctx.http_request(order.timeout(Duration::from_secs(2)))?;
    if answer.status != 200 {
        return ctx.json(502, json!({ "error": format!("the weather service answered {}", answer.status) }));
    }
    ctx.json(200, answer.json()?)
}

fn lines(ctx: &Context) -> Result {
    let sent = ctx.http().json()?;
    let id = sent["file_id"].as_str().unwrap_or("");
    let meta = ctx.file_meta(id)?;
    let (mut offset, mut count) = (0, 0);
    loop {
        let part = ctx.file_read(id, offset, 0)?;
        count += part.bytes.iter().filter(|byte| **byte == b'\n').count();
        offset += part.bytes.len();
        if part.eof {
            return ctx.json(200, json!({ "name": meta.name, "lines": count }));
        }
    }
}

fn report(ctx: &Context) -> Result {
    let file = ctx.file_store_with_ttl("seats.txt", "text/plain", "document", ctx.http().body()?, HOUR)?;
    ctx.json(201, json!({ "id": file.id.clone(), "url": ctx.file_url(&file.id)? }))
}

fn dishes(ctx: &Context) -> Result {
    let day = ctx.message().args.first().map_or("today", String::as_str);
    let file = ctx.file_store_with_ttl("dishes.txt", "text/plain", "document", "Soup\n", HOUR)?;
    for photo in ctx.files() {
        ctx.log(&format!("{} came along, {} bytes", photo.name, photo.size));
    }
    ctx.reply(new_message(format!("The dishes of {day}")).file(&file, "Dishes"))
}

fn remind(ctx: &Context) -> Result {
    let sent = ctx.http().json()?;
    let Some(reader) = sent["reader"].as_i64() else {
        return ctx.json(400, json!({ "error": r#"send {"reader": ...}"# }));
    };
    ctx.notify_user(reader, new_message("Your book is due"))?;
    ctx.set_http_response(202, &[], "")?;
    Ok(())
}

fn announce(ctx: &Context) -> Result {
    let sent = ctx.http().json()?;
    let text = |name: &str| sent[name].as_str().unwrap_or("").to_owned();
    let group = students().groups([text("group")]);
    let queued = ctx.notify_students(&group, new_message(text("text")))?;
    ctx.json(202, json!({ "queued": queued.queued, "unreachable": queued.unreachable }))
}

fn returned(ctx: &Context) -> Result {
    ctx.publish_event("book.returned", json!({ "book": ctx.http().param("book") }))?;
    ctx.set_http_response(202, &[], "")?;
    Ok(())
}

fn outside(ctx: &Context) -> Result {
    match ctx.call_plugin("weather", "temperature", json!({ "place": ctx.http().param("place") })) {
        Ok(answer) => ctx.json(200, answer),
        Err(error) => {
            ctx.log_error(&format!("weather: {}", error.message));
            ctx.json(503, json!({ "error": error.code.as_str() }))
        }
    }
}

fn free(ctx: &Context) -> Result {
    let seat = ctx.call().value()?["seat"].as_i64().unwrap_or(0);
    ctx.output(json!({ "free": ctx.kv_get(&format!("seat:{seat}"))?.is_none() }))
}
