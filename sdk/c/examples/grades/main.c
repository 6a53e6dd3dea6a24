/*
 * Grades in a database of the university: queries, a transaction, and a function for other plugins. It expects
 * CREATE TABLE grades (student bigint, course text, grade int CHECK (grade BETWEEN 2 AND 5), PRIMARY KEY (student, course));
 */
#include "plugin_host.h"

static ph_code grades(const ph_context *ctx);
static ph_code average(const ph_context *ctx);

const ph_plugin plugin = {
  .id = "grades",
  .name = "Grades",
  .version = "1.0.0",
  .requirements = PH_REQUIREMENTS(PH_DATABASE("Reads and writes the grades of students", .name = "grades")),
  .functions = PH_FUNCTIONS({"average", average}),
  .triggers = PH_TRIGGERS({
    .name = "grades",
    .type = PH_TRIGGER_HTTP,
    .path = "/students/:id",
    .methods = {"GET", "PUT"},
    .description = "Shows a student's grades, or takes several over at once",
    .handler = grades,
  }),
};

static ph_code show(int64_t student) {
  ph_sql db;
  ph_rows rows;
  PH_TRY(ph_sql_open("grades", &db));
  PH_TRY(ph_sql_query(
    db, "SELECT course, grade FROM grades WHERE student = $1 ORDER BY course", ph_array(ph_int(student)), &rows));
  ph_value *list = ph_array();
  while (ph_sql_next(&rows)) ph_append(list, ph_sql_object(&rows));
  PH_TRY(rows.code);
  return ph_json(200, ph_object({"student", ph_int(student)}, {"grades", list}));
}

static ph_code insert(ph_sql tx, int64_t student, const ph_value *given) {
  int64_t grade = 0;
  ph_as_int(ph_get(given, "grade"), &grade);
  const ph_text course = ph_or(ph_get_string(given, "course"), "");
  PH_TRY(ph_sql_exec(
    tx, "INSERT INTO grades VALUES ($1, $2, $3) ON CONFLICT (student, course) DO UPDATE SET grade = excluded.grade",
    ph_array(ph_int(student), ph_string(course), ph_int(grade)), NULL));
  return PH_OK;
}

/* Takes all grades over or none: a transaction that is not committed is rolled back at the end. */
static ph_code put(const ph_context *ctx, int64_t student) {
  const ph_value *sent = ph_body_or_null(ctx);
  if (ph_kind_of(sent) != PH_ARRAY || ph_count(sent) == 0)
    return ph_json_error(400, "send [{\"course\": ..., \"grade\": 2 to 5}]");
  ph_sql db, tx;
  PH_TRY(ph_sql_open("grades", &db));
  PH_TRY(ph_sql_begin(db, &tx));
  for (size_t k = 0; k < ph_count(sent); k++) PH_TRY(insert(tx, student, ph_item(sent, k)));
  PH_TRY(ph_sql_commit(tx));
  return ph_json(200, ph_object({"student", ph_int(student)}, {"taken", ph_int((int64_t)ph_count(sent))}));
}

/* The text begins with the SQLSTATE; class 23 is data that a constraint refuses. */
static int status_of(const ph_error *refused) {
  if (ph_starts_with(refused->text, "23")) return 422;
  return refused->code == PH_UNAVAILABLE ? 503 : 500;
}

static ph_code grades(const ph_context *ctx) {
  int64_t student;
  if (!ph_to_int(ph_param(ctx, "id"), &student) || student <= 0)
    return ph_json_error(400, "the student's id must be a number above 0");
  const ph_code code = ph_equal(ctx->http->method, "PUT") ? put(ctx, student) : show(student);
  const ph_error *refused = ph_last_error();
  return code == PH_OK ? PH_OK : ph_json_error(status_of(refused), refused->text);
}

/* For other plugins: the average of a student, {"student": id} -> {"average": "4.50"} or null. */
static ph_code average(const ph_context *ctx) {
  const ph_value *asked;
  ph_sql db;
  ph_rows rows;
  PH_TRY(ph_body_json(ctx, &asked));
  PH_TRY(ph_sql_open("grades", &db));
  PH_TRY(ph_sql_query(
    db, "SELECT round(avg(grade), 2) AS average FROM grades WHERE student = $1",
    ph_array(ph_get(asked, "student")), &rows));
  if (!ph_sql_next(&rows)) return rows.code == PH_OK ? ph_fail("the database gave no row") : rows.code;
  return ph_output(ph_sql_object(&rows));
}
