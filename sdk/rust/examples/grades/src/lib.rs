//! Grades in a database of the university: queries, a transaction, and a function for other plugins. It expects
//! CREATE TABLE grades (student bigint, course text, grade int CHECK (grade BETWEEN 2 AND 5), PRIMARY KEY (student, course));

use plugin_host::*;

plugin!(declare);

fn declare() -> Plugin {
    Plugin::new("grades", "Grades", "1.0.0")
        .require(database("Reads and writes the grades of students").name("grades").build())
        .function("average", average)
        .trigger(
            Trigger::http("grades", "/students/:id", grades)
                .methods(["GET", "PUT"])
                .description("Shows a student's grades, or takes several over at once"),
        )
}

fn grades(ctx: &Context) -> Result {
    let student = ctx.http().param("id").parse::<i64>().ok().filter(|id| *id > 0);
    let Some(student) = student else {
        return ctx.json(400, json!({ "error": "the student's id must be a number above 0" }));
    };
    let done = if ctx.http().method == "PUT" { put(ctx, student) } else { show(ctx, student) };
    match done {
        Ok((status, answer)) => ctx.json(status, answer),
        Err(error) => ctx.json(status_of(&error), json!({ "error": error.message })),
    }
}

/// The message begins with the SQLSTATE; class 23 is data that a constraint refuses.
fn status_of(error: &HostError) -> u16 {
    match error.code {
        _ if error.message.starts_with("23") => 422,
        ErrorCode::Unavailable => 503,
        _ => 500,
    }
}

type Answer = std::result::Result<(u16, Json), HostError>;

fn show(ctx: &Context, student: i64) -> Answer {
    let statement = "SELECT course, grade FROM grades WHERE student = $1 ORDER BY course";
    let mut grades = Vec::new();
    let db = ctx.database("grades")?;
    for row in db.query(statement, &[&student])? {
        grades.push(row?.to_json());
    }
    Ok((200, json!({ "student": student, "grades": grades })))
}

/// All of them or none.
fn put(ctx: &Context, student: i64) -> Answer {
    let given = ctx.http().json().unwrap_or(Json::Null);
    if given.items().is_empty() {
        return Ok((400, json!({ "error": r#"send [{"course": ..., "grade": 2 to 5}]"# })));
    }
    let db = ctx.database("grades")?;
    let transaction = db.begin()?;
    for sent in given.items() {
        let (course, grade) = (sent["course"].as_str().unwrap_or(""), sent["grade"].as_i64().unwrap_or(0));
        transaction.exec(
            "INSERT INTO grades VALUES ($1, $2, $3) ON CONFLICT (student, course) DO UPDATE SET grade = excluded.grade",
            &[&student, &course, &grade],
        )?;
    }
    transaction.commit()?;
    Ok((200, json!({ "student": student, "taken": given.items().len() })))
}

/// For other plugins: the average of a student, {"student": id} -> {"average": "4.50"} or null.
fn average(ctx: &Context) -> Result {
    let student = ctx.call().value()?["student"].as_i64();
    let statement = "SELECT round(avg(grade), 2) AS average FROM grades WHERE student = $1";
    let db = ctx.database("grades")?;
    let mut rows = db.query(statement, &[&student])?;
    let row = rows.next().ok_or("the database gave no row")??;
    ctx.output(row.to_json())
}
