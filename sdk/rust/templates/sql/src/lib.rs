use plugin_host::*;

plugin!(declare);

fn declare() -> Plugin {
    Plugin::new("template-plugin", "Template Plugin", "0.1.0")
        .require(database("Reads and keeps notes").name("notes").build())
        .trigger(
            Trigger::http("notes", "/notes", notes)
                .methods(["GET", "POST"])
                .description("Notes of the user")
                .access(Access::users("Each user has notes")),
        )
}

fn notes(ctx: &Context) -> Result {
    let user = ctx.http().auth.as_ref().filter(|auth| auth.kind == PrincipalKind::User);
    let Some(user) = user else {
        return ctx.json(401, json!({ "error": "log in first" }));
    };
    let db = ctx.database("notes")?;
    db.exec(
        "CREATE TABLE IF NOT EXISTS notes (user_id bigint NOT NULL, text text NOT NULL)",
        &[],
    )?;
    if ctx.http().method == "POST" {
        let text = ctx.http().body()?;
        db.exec("INSERT INTO notes VALUES ($1, $2)", &[&user.user_id, &text])?;
    }
    let mut all = Vec::new();
    for row in db.query("SELECT text FROM notes WHERE user_id = $1", &[&user.user_id])? {
        all.push(row?.to_json());
    }
    ctx.json(200, json!({ "notes": all }))
}
