use plugin_host::*;

plugin!(declare);

fn declare() -> Plugin {
    Plugin::new("template-plugin", "Template Plugin", "0.1.0")
        .require(file("Reads the files that are handed in").build())
        .trigger(
            Trigger::http("count", "/lines", count)
                .methods(["POST"])
                .description("Counts the lines of an uploaded file")
                .access(Access::users("Users may have their files counted")),
        )
}

/// Gets `{"file_id": "..."}`, the id of a file that was uploaded through `/api/files/`.
fn count(ctx: &Context) -> Result {
    let sent = ctx.http().json().unwrap_or(Json::Null);
    let Some(id) = sent["file_id"].as_str() else {
        return ctx.json(400, json!({ "error": r#"send {"file_id": ...}"# }));
    };
    let file = match ctx.file_meta(id) {
        Err(error) if error.code == ErrorCode::NotFound => {
            return ctx.json(404, json!({ "error": "there is no such file" }));
        }
        found => found?,
    };
    let content = ctx.file_read_all(id)?;
    let lines = content.iter().filter(|byte| **byte == b'\n').count() + 1;
    ctx.json(200, json!({ "name": file.name, "lines": lines }))
}
