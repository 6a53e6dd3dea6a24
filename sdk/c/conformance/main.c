/* Does what a test asks for, one function of the kit at a time: the same plugin is written in every kit. */
#include <stdlib.h>
#include <string.h>

#include "plugin_host.h"

/* One case: reads its arguments, calls the host and gives what it got. A result that stays NULL is null. */
typedef ph_code (*run_case)(const ph_context *ctx, const ph_value *given, const ph_value **result);

/* Arguments; a missing one is empty. */
static ph_text str(const ph_value *given, size_t k) { return ph_or(ph_as_text(ph_item(given, k)), ""); }

static int64_t num(const ph_value *given, size_t k) {
  int64_t number = 0;
  ph_to_int(str(given, k), &number);
  return number;
}

static ph_text bin(const ph_value *given, size_t k) {
  ph_text bytes = ph_bytes("", 0);
  ph_base64_decode(str(given, k), &bytes);
  return bytes;
}

static const ph_value *base64(ph_text bytes) { return ph_string(ph_base64_encode(bytes)); }

static const ph_value *sum(ph_text bytes) {
  uint64_t total = 0;
  for (size_t k = 0; k < bytes.length; k++) total = (total + (unsigned char)bytes.data[k] * (k % 251 + 1)) % 1000003;
  return ph_object({"length", ph_int((int64_t)bytes.length)}, {"sum", ph_int((int64_t)total)});
}

/* ----- requests ----- */

static ph_code request(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)given;
  const ph_request *r = ctx->http;
  const ph_value *auth = NULL;
  if (r->auth)
    auth = ph_object(
      {"kind", ph_string(r->auth->kind)},
      {"user_id", ph_int(r->auth->user_id)},
      {"service_key_id", ph_int(r->auth->service_key_id)});
  *result = ph_object(
    {"method", ph_string(r->method)},
    {"path", ph_string(r->path)},
    {"query", r->query},
    {"query_all", r->query_all},
    {"raw_query", ph_string(r->raw_query)},
    {"header", ph_string(ph_header(ctx, "X-Test"))},
    {"param", ph_string(ph_param(ctx, "case"))},
    {"address", ph_string(r->remote_addr)},
    {"auth", auth});
  return PH_OK;
}

static ph_code config(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  *result = ph_string(ph_config(str(given, 0)));
  return PH_OK;
}

static ph_code host_info(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx, (void)given;
  ph_info info;
  PH_TRY(ph_host_info(&info));
  *result = ph_int(info.abi);
  return PH_OK;
}

static ph_code log_lines(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx, (void)result;
  ph_log(str(given, 0));
  ph_log_error(str(given, 0));
  return PH_OK;
}

static ph_code large(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  const size_t length = (size_t)num(given, 0);
  *result = ph_string(ph_bytes(memset(ph_alloc(length), 'x', length), length));
  return PH_OK;
}

static ph_code draw(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx, (void)given;
  int64_t numbers[2];
  ph_random(numbers, sizeof numbers);
  *result = ph_array(ph_int(numbers[0]), ph_int(numbers[1]));
  return PH_OK;
}

static ph_code read_clock(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx, (void)given;
  *result = ph_int(ph_now_ms());
  return PH_OK;
}

/* ----- key-value store ----- */

static ph_code kv_get(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_text value;
  const ph_code code = ph_kv_get(str(given, 0), &value);
  if (code == PH_NOT_FOUND) return PH_OK;
  *result = ph_string(value);
  return code;
}

static ph_code kv_get_bytes(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_text value;
  const ph_code code = ph_kv_get(str(given, 0), &value);
  if (code == PH_NOT_FOUND) return PH_OK;
  *result = ph_bytes_value(value);
  return code;
}

static ph_code several(const ph_value *given, bool as_bytes, const ph_value **result) {
  const ph_value *names = ph_item(given, 0);
  const size_t count = ph_count(names);
  ph_text *keys = ph_alloc(count * sizeof *keys);
  ph_text *values = ph_alloc(count * sizeof *values);
  for (size_t k = 0; k < count; k++) keys[k] = str(names, k);
  PH_TRY(ph_kv_get_many(keys, count, values));
  ph_value *all = ph_array();
  for (size_t k = 0; k < count; k++) ph_append(all, as_bytes ? ph_bytes_value(values[k]) : ph_string(values[k]));
  *result = all;
  return PH_OK;
}

static ph_code kv_get_many(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  return several(given, false, result);
}

static ph_code kv_get_many_bytes(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  return several(given, true, result);
}

static ph_code kv_set(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx, (void)result;
  return ph_kv_set(str(given, 0), str(given, 1), (int32_t)num(given, 2));
}

static ph_code kv_set_bytes(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx, (void)result;
  return ph_kv_set(str(given, 0), bin(given, 1), 0);
}

static const ph_value *updated(ph_kv_update update) {
  return update.written
    ? ph_object({"written", ph_bool(true)})
    : ph_object({"written", ph_bool(false)}, {"present", ph_string(update.present)});
}

static ph_code kv_set_if_absent(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_kv_update update;
  PH_TRY(ph_kv_set_if_absent(str(given, 0), str(given, 1), 0, &update));
  *result = updated(update);
  return PH_OK;
}

static ph_code kv_compare_and_set(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_kv_update update;
  PH_TRY(ph_kv_compare_and_set(str(given, 0), str(given, 1), str(given, 2), 0, &update));
  *result = updated(update);
  return PH_OK;
}

static ph_code kv_increment(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  int64_t total;
  PH_TRY(ph_kv_increment(str(given, 0), num(given, 1), 0, &total));
  *result = ph_int(total);
  return PH_OK;
}

static ph_code kv_delete(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  bool removed;
  PH_TRY(ph_kv_delete(str(given, 0), &removed));
  *result = ph_bool(removed);
  return PH_OK;
}

static ph_code kv_list(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_keys page;
  PH_TRY(ph_kv_list(str(given, 0), str(given, 1), (int32_t)num(given, 2), &page));
  ph_value *keys = ph_array();
  for (size_t k = 0; k < page.count; k++) ph_append(keys, ph_string(page.keys[k]));
  *result = ph_object({"keys", keys}, {"next", ph_string(page.next)});
  return PH_OK;
}

/* ----- databases ----- */

static ph_code sql_query(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_sql db;
  ph_rows rows;
  PH_TRY(ph_sql_open("", &db));
  PH_TRY(ph_sql_query(db, str(given, 0), ph_item(given, 1), &rows));
  ph_value *all = ph_array();
  while (ph_sql_next(&rows)) ph_append(all, ph_sql_object(&rows));
  *result = all;
  return rows.code;
}

static ph_code sql_exec(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_sql db;
  int64_t changed;
  PH_TRY(ph_sql_open("", &db));
  PH_TRY(ph_sql_exec(db, str(given, 0), ph_item(given, 1), &changed));
  *result = ph_int(changed);
  return PH_OK;
}

static ph_code sql_integer(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx, (void)given;
  ph_sql db;
  ph_rows rows;
  PH_TRY(ph_sql_open("", &db));
  PH_TRY(ph_sql_query(db, "SELECT $1::int8 AS n", ph_array(ph_int(9007199254740993)), &rows));
  if (ph_sql_next(&rows)) *result = ph_int(ph_sql_int(&rows, 0));
  return rows.code;
}

static ph_code sql_bytes(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx, (void)given;
  ph_sql db;
  ph_rows rows;
  ph_text bytes;
  PH_TRY(ph_sql_open("", &db));
  PH_TRY(ph_sql_query(db, "SELECT $1::bytea AS b", ph_array(ph_bytes_value(ph_bytes("\0\xff", 2))), &rows));
  if (ph_sql_next(&rows) && ph_as_bytes(ph_sql_value(&rows, 0), &bytes)) *result = base64(bytes);
  return rows.code;
}

static ph_code sql_transaction(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_sql db, transaction;
  int64_t changed;
  PH_TRY(ph_sql_open("", &db));
  PH_TRY(ph_sql_begin(db, &transaction));
  PH_TRY(ph_sql_exec(transaction, str(given, 1), NULL, &changed));
  *result = ph_int(changed);
  return ph_as_bool(ph_item(given, 0)) ? ph_sql_commit(transaction) : ph_sql_rollback(transaction);
}

static ph_code sql_other(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx, (void)result;
  ph_sql db;
  PH_TRY(ph_sql_open(str(given, 0), &db));
  PH_TRY(ph_sql_exec(db, "SELECT 1", NULL, NULL));
  return ph_sql_close(db);
}

/* ----- other hosts, messages, events, other plugins ----- */

static ph_code http_request(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  const ph_http_order order = {
    .method = str(given, 0), .url = str(given, 1), .headers = ph_item(given, 2), .body = str(given, 3)};
  ph_http_answer answer;
  PH_TRY(ph_http_request(&order, &answer));
  *result = ph_object(
    {"status", ph_int(answer.status)},
    {"header", ph_string(ph_answer_header(&answer, "X-Answer"))},
    {"body", ph_string(answer.body)});
  return PH_OK;
}

static ph_code http_get(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_http_answer answer;
  PH_TRY(ph_http_get(str(given, 0), &answer));
  *result = ph_string(answer.body);
  return PH_OK;
}

static ph_code http_post(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_http_answer answer;
  PH_TRY(ph_http_post(str(given, 0), str(given, 1), str(given, 2), &answer));
  *result = ph_string(answer.body);
  return PH_OK;
}

static ph_code notify_user(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx, (void)result;
  return ph_notify_user(num(given, 0), ph_new_message(str(given, 1)));
}

static ph_code notify_chat(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx, (void)result;
  return ph_notify_chat(str(given, 0), ph_new_message(str(given, 1)));
}

static ph_code notify_students(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  const ph_students filter = {.groups = ph_kind_of(ph_item(given, 0)) == PH_NULL ? ph_array() : ph_array(ph_string(str(given, 0)))};
  ph_queued queued;
  PH_TRY(ph_notify_students(&filter, ph_new_message(str(given, 1)), &queued));
  *result = ph_object({"queued", ph_int(queued.queued)}, {"unreachable", ph_int(queued.unreachable)});
  return PH_OK;
}

static ph_code publish(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx, (void)result;
  return ph_publish_event(str(given, 0), ph_item(given, 1));
}

static ph_code call(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  return ph_call_plugin("target", str(given, 0), ph_item(given, 1), result);
}

static ph_code call_raw(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_text answer;
  PH_TRY(ph_call_plugin_raw("target", str(given, 0), bin(given, 1), &answer));
  *result = base64(answer);
  return PH_OK;
}

/* ----- files ----- */

static const ph_value *wire(ph_file file) {
  return ph_object(
    {"id", ph_string(file.id)},
    {"name", ph_string(file.name)},
    {"mime_type", ph_string(file.mime_type)},
    {"size", ph_int(file.size)},
    {"file_type", ph_string(file.file_type)});
}

static ph_code file_store(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_file file;
  PH_TRY(ph_file_store(str(given, 0), str(given, 1), str(given, 2), bin(given, 3), &file));
  *result = wire(file);
  return PH_OK;
}

static ph_code file_store_ttl(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_file file;
  PH_TRY(ph_file_store_with_ttl(str(given, 0), "text/plain", "document", "short-lived", num(given, 1), &file));
  *result = wire(file);
  return PH_OK;
}

static ph_code file_meta(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_file file;
  PH_TRY(ph_file_meta(str(given, 0), &file));
  *result = wire(file);
  return PH_OK;
}

static ph_code file_read(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_text part;
  bool is_end;
  PH_TRY(ph_file_read(str(given, 0), num(given, 1), (size_t)num(given, 2), &part, &is_end));
  *result = ph_object(
    {"length", ph_int((int64_t)part.length)},
    {"first", ph_int((unsigned char)part.data[0])},
    {"eof", ph_bool(is_end)});
  return PH_OK;
}

static ph_code file_read_all(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_text content;
  PH_TRY(ph_file_read_all(str(given, 0), &content));
  *result = sum(content);
  return PH_OK;
}

static ph_code file_url(const ph_context *ctx, const ph_value *given, const ph_value **result) {
  (void)ctx;
  ph_text url;
  PH_TRY(ph_file_url(str(given, 0), &url));
  *result = ph_bool(url.length > 0);
  return PH_OK;
}

static const struct {
  const char *name;
  run_case run;
} cases[] = {
  {"request", request},
  {"config", config},
  {"host_info", host_info},
  {"log", log_lines},
  {"large", large},
  {"random", draw},
  {"clock", read_clock},
  {"kv_get", kv_get},
  {"kv_get_bytes", kv_get_bytes},
  {"kv_get_many", kv_get_many},
  {"kv_get_many_bytes", kv_get_many_bytes},
  {"kv_set", kv_set},
  {"kv_set_bytes", kv_set_bytes},
  {"kv_set_if_absent", kv_set_if_absent},
  {"kv_compare_and_set", kv_compare_and_set},
  {"kv_increment", kv_increment},
  {"kv_delete", kv_delete},
  {"kv_list", kv_list},
  {"sql_query", sql_query},
  {"sql_exec", sql_exec},
  {"sql_integer", sql_integer},
  {"sql_bytes", sql_bytes},
  {"sql_transaction", sql_transaction},
  {"sql_other", sql_other},
  {"http_request", http_request},
  {"http_get", http_get},
  {"http_post", http_post},
  {"notify_user", notify_user},
  {"notify_chat", notify_chat},
  {"notify_students", notify_students},
  {"publish", publish},
  {"call", call},
  {"call_raw", call_raw},
  {"file_store", file_store},
  {"file_store_ttl", file_store_ttl},
  {"file_meta", file_meta},
  {"file_read", file_read},
  {"file_read_all", file_read_all},
  {"file_url", file_url},
};

static run_case case_of(ph_text name) {
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
    if (ph_equal(name, cases[k].name)) return cases[k].run;
  return NULL;
}

static ph_code run(const ph_context *ctx) {
  const ph_text name = ph_param(ctx, "case");
  if (ph_equal(name, "silent")) return PH_OK;
  if (ph_equal(name, "body_bytes"))
    return ph_json(200, ph_object({"result", ph_int((int64_t)ph_body(ctx).length)}));
  const ph_value *given;
  PH_TRY(ph_body_json(ctx, &given));
  if (ph_equal(name, "throw")) return ph_fail(str(given, 0));
  if (ph_equal(name, "give_back")) {
    ph_file file;
    return ph_file_meta(str(given, 0), &file);
  }
  if (ph_equal(name, "loop"))
    for (;;) {
    }
  if (ph_equal(name, "respond")) return ph_respond((int)num(given, 0), ph_item(given, 1), str(given, 2));
  if (ph_equal(name, "respond_bytes")) return ph_respond(200, NULL, bin(given, 0));
  const run_case wanted = case_of(name);
  if (!wanted) return ph_json(404, ph_object({"left_out", ph_string(name)}));
  const ph_value *result = NULL;
  const ph_code code = wanted(ctx, given, &result);
  if (code == PH_OK) return ph_json(200, ph_object({"result", result}));
  if (code == PH_FAILED) return code;
  return ph_json(
    200, ph_object({"code", ph_string(ph_code_name(code))}, {"text", ph_string(ph_last_error()->text)}));
}

static ph_code say(const ph_context *ctx) {
  const ph_incoming *m = ctx->message;
  ph_value *args = ph_array();
  for (size_t k = 0; k < m->arg_count; k++) ph_append(args, ph_string(m->args[k]));
  ph_value *files = ph_array();
  for (size_t k = 0; ph_has_files(ctx) && k < m->file_count; k++) {
    ph_text content;
    PH_TRY(ph_file_read_all(m->files[k].id, &content));
    ph_append(files, ph_string(ph_concat(ph_concat(m->files[k].file_type, ": "), content)));
  }
  const ph_value *what = ph_object(
    {"text", ph_string(m->text)},
    {"args", args},
    {"chat", ph_string(m->chat_id)},
    {"user", m->user_id ? ph_int(*m->user_id) : NULL},
    {"files", files});
  PH_TRY(ph_reply(ph_new_message(ph_json_text(what))));
  if (m->arg_count == 0) return PH_OK;
  ph_file file;
  PH_TRY(ph_file_store(m->args[0], "text/plain", "document", "in it", &file));
  return ph_reply(ph_message_file(ph_new_message(""), &file, "Here"));
}

static ph_code twice(const ph_context *ctx) {
  const ph_value *value;
  int64_t number;
  PH_TRY(ph_body_json(ctx, &value));
  if (!ph_as_int(value, &number)) return ph_fail("double takes a whole number");
  return ph_output(ph_object({"doubled", ph_int(number * 2)}, {"from", ph_string(ctx->call->from)}));
}

static ph_code reverse(const ph_context *ctx) {
  const ph_text bytes = ph_body(ctx);
  char *turned = ph_alloc(bytes.length);
  for (size_t k = 0; k < bytes.length; k++) turned[k] = bytes.data[bytes.length - 1 - k];
  return ph_output_bytes(ph_bytes(turned, bytes.length));
}

static ph_code refuse(const ph_context *ctx) {
  (void)ctx;
  return ph_fail("refused by its author");
}

const ph_plugin plugin = {
  .id = "conformance",
  .name = "Conformance",
  .version = "1.0.0",
  .requirements = PH_REQUIREMENTS(
    PH_KV("Cases", .config = PH_CONFIG(PH_STRING("title", "A title", .required = true), PH_STRING("none", "Empty"))),
    PH_DATABASE("Cases"),
    PH_HTTP("Cases"),
    PH_NOTIFY("Cases"),
    PH_EVENTS("Cases"),
    PH_PLUGIN_DEP("target", "Cases"),
    PH_FILE("Cases")),
  .triggers = PH_TRIGGERS(
    {.name = "run", .type = PH_TRIGGER_HTTP, .path = "/run/:case", .methods = {"GET", "POST"}, .handler = run},
    {.name = "say", .type = PH_TRIGGER_MESSENGER, .description = "Says what came", .handler = say}),
  .functions = PH_FUNCTIONS({"double", twice}, {"reverse", reverse}, {"refuse", refuse}),
};
