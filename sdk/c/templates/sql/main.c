#include "plugin_host.h"

static ph_code notes(const ph_context *ctx) {
  const ph_auth *auth = ctx->http->auth;
  if (auth == NULL || !ph_equal(auth->kind, "user")) return ph_json_error(401, "log in first");
  ph_sql db;
  PH_TRY(ph_sql_open("notes", &db));
  PH_TRY(ph_sql_exec(
    db, "CREATE TABLE IF NOT EXISTS notes (user_id bigint NOT NULL, text text NOT NULL)", NULL, NULL));
  if (ph_equal(ctx->http->method, "POST")) {
    ph_value *values = ph_array(ph_int(auth->user_id), ph_string(ph_body(ctx)));
    PH_TRY(ph_sql_exec(db, "INSERT INTO notes VALUES ($1, $2)", values, NULL));
  }
  ph_rows rows;
  PH_TRY(ph_sql_query(
    db, "SELECT text FROM notes WHERE user_id = $1", ph_array(ph_int(auth->user_id)), &rows));
  ph_value *all = ph_array();
  while (ph_sql_next(&rows)) ph_append(all, ph_sql_object(&rows));
  PH_TRY(rows.code);
  return ph_json(200, ph_object({"notes", all}));
}

const ph_plugin plugin = {
  .id = "template-plugin",
  .name = "Template Plugin",
  .version = "0.1.0",
  .requirements = PH_REQUIREMENTS(PH_DATABASE("Reads and keeps notes", .name = "notes")),
  .triggers = PH_TRIGGERS({
    .name = "notes",
    .type = PH_TRIGGER_HTTP,
    .path = "/notes",
    .methods = {"GET", "POST"},
    .description = "Notes of the user",
    .access = PH_USERS("Each user has notes"),
    .handler = notes,
  }),
};
