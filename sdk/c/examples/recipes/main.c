/* One handler for each recipe of docs/authors.md. */
#include "plugin_host.h"

enum { HOUR_MS = 3600000 };

static ph_code greet(const ph_context *ctx);
static ph_code order(const ph_context *ctx);
static ph_code table(const ph_context *ctx);
static ph_code me(const ph_context *ctx);
static ph_code note(const ph_context *ctx);
static ph_code visit(const ph_context *ctx);
static ph_code claim(const ph_context *ctx);
static ph_code release(const ph_context *ctx);
static ph_code seats(const ph_context *ctx);
static ph_code grades(const ph_context *ctx);
static ph_code enter(const ph_context *ctx);
static ph_code weather(const ph_context *ctx);
static ph_code lines(const ph_context *ctx);
static ph_code report(const ph_context *ctx);
static ph_code dishes(const ph_context *ctx);
static ph_code remind(const ph_context *ctx);
static ph_code announce(const ph_context *ctx);
static ph_code returned(const ph_context *ctx);
static ph_code outside(const ph_context *ctx);
static ph_code is_free(const ph_context *ctx);

const ph_plugin plugin = {
  .id = "recipes",
  .name = "Recipes",
  .version = "1.0.0",
  .requirements = PH_REQUIREMENTS(
    PH_KV("Remembers notes, seats and visits"),
    PH_DATABASE("Reads and writes grades", .name = "grades"),
    PH_HTTP("Asks the weather service", .config = PH_CONFIG(
      PH_STRING("service", "Address of the weather service", .required = true),
      PH_STRING("key", "Key of the weather service", .required = true, .sensitive = true))),
    PH_FILE("Reads what users upload, and stores reports"),
    PH_NOTIFY("Reminds users and writes to study groups"),
    PH_EVENTS("Says when a book was returned"),
    PH_PLUGIN_DEP("weather", "Asks for the temperature")),
  .functions = PH_FUNCTIONS({"free", is_free}),
  .triggers = PH_TRIGGERS(
    {.name = "greet", .type = PH_TRIGGER_HTTP, .path = "/greet/:name", .methods = {"GET"},
     .handler = greet, .access = PH_PUBLIC("It shows what the caller sent")},
    {.name = "order", .type = PH_TRIGGER_HTTP, .path = "/orders", .methods = {"POST"}, .handler = order},
    {.name = "table", .type = PH_TRIGGER_HTTP, .path = "/table", .methods = {"GET"}, .handler = table},
    {.name = "me", .type = PH_TRIGGER_HTTP, .path = "/me", .methods = {"GET"},
     .handler = me, .access = PH_USERS_AND_SERVICE_KEYS("Each caller sees who it is")},
    {.name = "note", .type = PH_TRIGGER_HTTP, .path = "/notes/:name", .methods = {"GET", "PUT", "DELETE"},
     .handler = note},
    {.name = "visit", .type = PH_TRIGGER_HTTP, .path = "/visits", .methods = {"POST"}, .handler = visit},
    {.name = "claim", .type = PH_TRIGGER_HTTP, .path = "/seats/:seat", .methods = {"POST"},
     .handler = claim, .access = PH_USERS("Users take seats")},
    {.name = "release", .type = PH_TRIGGER_HTTP, .path = "/seats/:seat/release", .methods = {"POST"},
     .handler = release, .access = PH_USERS("Users give back their seats")},
    {.name = "seats", .type = PH_TRIGGER_HTTP, .path = "/seats", .methods = {"GET"}, .handler = seats},
    {.name = "grades", .type = PH_TRIGGER_HTTP, .path = "/grades/:student", .methods = {"GET"}, .handler = grades},
    {.name = "enter", .type = PH_TRIGGER_HTTP, .path = "/grades", .methods = {"POST"},
     .handler = enter, .access = PH_SERVICE_KEYS("The register enters grades")},
    {.name = "weather", .type = PH_TRIGGER_HTTP, .path = "/weather/:place", .methods = {"GET"}, .handler = weather},
    {.name = "lines", .type = PH_TRIGGER_HTTP, .path = "/lines", .methods = {"POST"},
     .handler = lines, .access = PH_USERS("Users have their files counted")},
    {.name = "report", .type = PH_TRIGGER_HTTP, .path = "/reports", .methods = {"POST"},
     .handler = report, .access = PH_USERS("Users store reports")},
    {.name = "dishes", .type = PH_TRIGGER_MESSENGER, .description = "The dishes of a day", .handler = dishes},
    {.name = "remind", .type = PH_TRIGGER_HTTP, .path = "/reminders", .methods = {"POST"},
     .handler = remind, .access = PH_SERVICE_KEYS("The library reminds its readers")},
    {.name = "announce", .type = PH_TRIGGER_HTTP, .path = "/announcements", .methods = {"POST"},
     .handler = announce, .access = PH_USERS("Deans write to groups", .policy = "has_role(\"dean\")")},
    {.name = "returned", .type = PH_TRIGGER_HTTP, .path = "/returned/:book", .methods = {"POST"}, .handler = returned},
    {.name = "outside", .type = PH_TRIGGER_HTTP, .path = "/outside/:place", .methods = {"GET"}, .handler = outside}),
};

static ph_code greet(const ph_context *ctx) {
  const ph_text word = ph_concat(ph_or(ph_query(ctx, "word"), "Hello"), ", ");
  return ph_json(200, ph_object({"message", ph_string(ph_concat(ph_concat(word, ph_param(ctx, "name")), "!"))}));
}

static ph_code order(const ph_context *ctx) {
  const ph_text dish = ph_get_string(ph_body_or_null(ctx), "dish");
  if (dish.length == 0) return ph_json_error(400, "send {\"dish\": ...}");
  return ph_json(201, ph_object({"dish", ph_string(dish)}));
}

static ph_code table(const ph_context *ctx) {
  const ph_value *headers = ph_object(
    {"Content-Type", ph_string("text/csv")},
    {"Content-Disposition", ph_string("attachment; filename=\"seats.csv\"")});
  return ph_respond(200, headers, "seat,name\n1,Ada\n");
}

static ph_code me(const ph_context *ctx) {
  const ph_auth *auth = ctx->http->auth;
  if (auth == NULL) return ph_json_error(401, "log in first");
  const int64_t id = ph_equal(auth->kind, "user") ? auth->user_id : auth->service_key_id;
  return ph_json(200, ph_object({"kind", ph_string(auth->kind)}, {"id", ph_int(id)}));
}

static ph_code note(const ph_context *ctx) {
  const ph_text key = ph_concat("note:", ph_param(ctx, "name"));
  if (ph_equal(ctx->http->method, "PUT")) PH_TRY(ph_kv_set(key, ph_body(ctx), 3600));
  ph_text text;
  const ph_code code = ph_kv_get(key, &text);
  if (code == PH_NOT_FOUND) return ph_json_error(404, "there is no such note");
  PH_TRY(code);
  if (ph_equal(ctx->http->method, "DELETE")) PH_TRY(ph_kv_delete(key, NULL));
  return ph_json(200, ph_object({"text", ph_string(text)}));
}

static ph_code visit(const ph_context *ctx) {
  int64_t visits;
  PH_TRY(ph_kv_increment("visits", 1, 0, &visits));
  return ph_json(200, ph_object({"visits", ph_int(visits)}));
}

static ph_code claim(const ph_context *ctx) {
  const ph_auth *auth = ctx->http->auth;
  if (auth == NULL || !ph_equal(auth->kind, "user")) return ph_json_error(401, "log in first");
  const ph_text key = ph_concat("seat:", ph_param(ctx, "seat")), user = ph_format("%lld", auth->user_id);
  ph_kv_update claimed;
  PH_TRY(ph_kv_set_if_absent(key, user, 0, &claimed));
  if (!claimed.written && ph_equal(claimed.present, "")) PH_TRY(ph_kv_compare_and_set(key, "", user, 0, &claimed));
  if (!claimed.written) return ph_json_error(409, "the seat is taken");
  return ph_json(201, ph_object({"user", ph_string(user)}));
}

static ph_code release(const ph_context *ctx) {
  const ph_auth *auth = ctx->http->auth;
  if (auth == NULL || !ph_equal(auth->kind, "user")) return ph_json_error(401, "log in first");
  const ph_text key = ph_concat("seat:", ph_param(ctx, "seat")), user = ph_format("%lld", auth->user_id);
  ph_kv_update released;
  PH_TRY(ph_kv_compare_and_set(key, user, "", 0, &released));
  if (!released.written) return ph_json_error(409, "the seat is not yours");
  return ph_respond(204, ph_object(), "");
}

static ph_code seats(const ph_context *ctx) {
  ph_keys page;
  PH_TRY(ph_kv_list("seat:", ph_or(ph_query(ctx, "after"), ""), 50, &page));
  ph_text *users = ph_alloc(page.count * sizeof *users);
  PH_TRY(ph_kv_get_many(page.keys, page.count, users));
  ph_value *list = ph_array();
  for (size_t k = 0; k < page.count; k++)
    ph_append(list, ph_object({"key", ph_string(page.keys[k])}, {"user", ph_string(ph_or(users[k], ""))}));
  return ph_json(200, ph_object({"seats", list}, {"next", ph_string(ph_or(page.next, ""))}));
}

static ph_code grades(const ph_context *ctx) {
  int64_t student;
  if (!ph_to_int(ph_param(ctx, "student"), &student)) return ph_json_error(404, "there is no such student");
  ph_sql db;
  ph_rows rows;
  PH_TRY(ph_sql_open("grades", &db));
  const ph_text statement = PH_TEXT("SELECT course, grade FROM grades WHERE student = $1 ORDER BY course");
  PH_TRY(ph_sql_query(db, statement, ph_array(ph_int(student)), &rows));
  ph_value *list = ph_array();
  while (ph_sql_next(&rows)) ph_append(list, ph_sql_object(&rows));
  PH_TRY(rows.code);
  return ph_json(200, ph_object({"grades", list}));
}

static ph_code enter(const ph_context *ctx) {
  const ph_value *sent;
  PH_TRY(ph_body_json(ctx, &sent));
  const ph_value *courses = ph_get(sent, "courses");
  ph_sql db, tx;
  PH_TRY(ph_sql_open("grades", &db));
  PH_TRY(ph_sql_begin(db, &tx));
  const ph_text made = PH_TEXT("CREATE TABLE IF NOT EXISTS grades (student bigint, course text, grade int)");
  PH_TRY(ph_sql_exec(tx, made, NULL, NULL));
  for (size_t k = 0; k < ph_count(courses); k++) {
    const ph_value *values = ph_array(ph_get(sent, "student"), ph_item(courses, k));
    PH_TRY(ph_sql_exec(tx, "INSERT INTO grades VALUES ($1, $2, 5)", values, NULL));
  }
  PH_TRY(ph_sql_commit(tx));
  return ph_json(201, ph_object({"entered", ph_int((int64_t)ph_count(courses))}));
}

static ph_code weather(const ph_context *ctx) {
  const ph_text place = ph_concat("/current?place=", ph_url_encode(ph_param(ctx, "place")));
  const ph_http_order order = {
    .url = ph_concat(ph_config("service"), place),
    .headers = ph_object({"authorization", ph_string(ph_concat("Bearer ", ph_config("key")))}),
    .timeout_ms = 2000,
  };
  ph_http_answer answer;
  PH_TRY(ph_http_request(&order, &answer));
  if (answer.status != 200) return ph_json_error(502, ph_format("the weather service answered %d", answer.status));
  const ph_value *found;
  PH_TRY(ph_json_parse(answer.body, &found));
  return ph_json(200, found);
}

static ph_code lines(const ph_context *ctx) {
  const ph_text id = ph_or(ph_get_string(ph_body_or_null(ctx), "file_id"), "");
  ph_file meta;
  PH_TRY(ph_file_meta(id, &meta));
  int64_t offset = 0, count = 0;
  for (bool is_end = false; !is_end;) {
    ph_text part;
    PH_TRY(ph_file_read(id, offset, 0, &part, &is_end));
    for (size_t k = 0; k < part.length; k++) count += part.data[k] == '\n';
    offset += (int64_t)part.length;
  }
  return ph_json(200, ph_object({"name", ph_string(meta.name)}, {"lines", ph_int(count)}));
}

static ph_code report(const ph_context *ctx) {
  ph_file file;
  ph_text link;
  PH_TRY(ph_file_store_with_ttl("seats.txt", "text/plain", "document", ph_body(ctx), HOUR_MS, &file));
  PH_TRY(ph_file_url(file.id, &link));
  return ph_json(201, ph_object({"id", ph_string(file.id)}, {"url", ph_string(link)}));
}

static ph_code dishes(const ph_context *ctx) {
  const ph_text day = ctx->message->arg_count > 0 ? ctx->message->args[0] : PH_TEXT("today");
  ph_file file;
  PH_TRY(ph_file_store_with_ttl("dishes.txt", "text/plain", "document", "Soup\n", HOUR_MS, &file));
  for (size_t k = 0; k < ctx->message->file_count; k++) {
    const ph_file *photo = &ctx->message->files[k];
    ph_log(ph_format("%s came along, %lld bytes", photo->name.data, photo->size));
  }
  return ph_reply(ph_message_file(ph_new_message(ph_concat("The dishes of ", day)), &file, "Dishes"));
}

static ph_code remind(const ph_context *ctx) {
  int64_t reader;
  if (!ph_as_int(ph_get(ph_body_or_null(ctx), "reader"), &reader)) return ph_json_error(400, "send {\"reader\": ...}");
  PH_TRY(ph_notify_user(reader, ph_new_message("Your book is due")));
  return ph_respond(202, ph_object(), "");
}

static ph_code announce(const ph_context *ctx) {
  const ph_value *sent = ph_body_or_null(ctx);
  const ph_students students = {.groups = ph_array(ph_get(sent, "group"))};
  ph_queued queued;
  PH_TRY(ph_notify_students(&students, ph_new_message(ph_get_string(sent, "text")), &queued));
  return ph_json(202, ph_object({"queued", ph_int(queued.queued)}, {"unreachable", ph_int(queued.unreachable)}));
}

static ph_code returned(const ph_context *ctx) {
  PH_TRY(ph_publish_event("book.returned", ph_object({"book", ph_string(ph_param(ctx, "book"))})));
  return ph_respond(202, ph_object(), "");
}

static ph_code outside(const ph_context *ctx) {
  const ph_value *answer;
  const ph_value *asked = ph_object({"place", ph_string(ph_param(ctx, "place"))});
  const ph_code code = ph_call_plugin("weather", "temperature", asked, &answer);
  if (code == PH_OK) return ph_json(200, answer);
  ph_log_error(ph_concat("weather: ", ph_last_error()->text));
  return ph_json_error(503, ph_code_name(code));
}

static ph_code is_free(const ph_context *ctx) {
  const ph_value *asked;
  PH_TRY(ph_body_json(ctx, &asked));
  int64_t seat = 0;
  ph_as_int(ph_get(asked, "seat"), &seat);
  ph_text name;
  const ph_code code = ph_kv_get(ph_format("seat:%lld", seat), &name);
  if (code != PH_NOT_FOUND) PH_TRY(code);
  return ph_output(ph_object({"free", ph_bool(code == PH_NOT_FOUND)}));
}
