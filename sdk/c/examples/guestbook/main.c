/* Entries in the key-value store, listed page by page; a title and a secret key from the configuration. */
#include "plugin_host.h"

static ph_code entries(const ph_context *ctx);
static ph_code one_entry(const ph_context *ctx);

const ph_plugin plugin = {
  .id = "guestbook",
  .name = "Guestbook",
  .version = "1.0.0",
  .requirements = PH_REQUIREMENTS(PH_KV(
    "Keeps the entries of the guestbook",
    .config = PH_CONFIG(
      PH_STRING("title", "Title shown above the entries"),
      PH_STRING("moderator_key", "Key that allows to remove an entry", .required = true, .sensitive = true)))),
  .triggers = PH_TRIGGERS(
    {
      .name = "entries",
      .type = PH_TRIGGER_HTTP,
      .path = "/entries",
      .methods = {"GET", "POST"},
      .description = "Lists the entries or adds one",
      .access = PH_PUBLIC("Visitors read the guestbook and sign it without a login"),
      .handler = entries,
    },
    {
      .name = "entry",
      .type = PH_TRIGGER_HTTP,
      .path = "/entries/:id",
      .methods = {"GET", "DELETE"},
      .description = "Shows or removes one entry",
      .access = PH_PUBLIC("Visitors read an entry without a login; removing one needs the moderator's key"),
      .handler = one_entry,
    }),
};

#define PREFIX "entry:"
enum { PAGE = 50 };

/* Entries are stored as the JSON they are answered as. */
static ph_code list(const ph_context *ctx) {
  ph_keys page;
  PH_TRY(ph_kv_list(PREFIX, ph_concat(PREFIX, ph_query(ctx, "after")), PAGE, &page));
  ph_text stored[PAGE];
  PH_TRY(ph_kv_get_many(page.keys, page.count, stored));
  ph_value *found = ph_array();
  for (size_t k = 0; k < page.count; k++) {
    const ph_value *entry;
    if (ph_is_absent(stored[k])) continue; // it was removed between the two calls
    PH_TRY(ph_json_parse(stored[k], &entry));
    ph_append(found, entry);
  }
  return ph_json(200, ph_object(
    {"title", ph_string(ph_or(ph_config("title"), "Guestbook"))},
    {"entries", found},
    {"next", ph_string(ph_strip_prefix(page.next, PREFIX))}));
}

static ph_code add(const ph_context *ctx) {
  const ph_value *sent = ph_body_or_null(ctx);
  const ph_text name = ph_get_string(sent, "name");
  const ph_text text = ph_get_string(sent, "text");
  if (name.length == 0 || text.length == 0) return ph_json_error(400, "send {\"name\": ..., \"text\": ...}");
  const ph_value *entry =
    ph_object({"id", ph_string(ctx->request_id)}, {"name", ph_string(name)}, {"text", ph_string(text)});
  PH_TRY(ph_kv_set(ph_concat(PREFIX, ctx->request_id), ph_json_text(entry), 0));
  ph_log(ph_format("entry %s by %s", ctx->request_id.data, name.data));
  return ph_json(201, entry);
}

static ph_code entries(const ph_context *ctx) {
  return ph_equal(ctx->http->method, "POST") ? add(ctx) : list(ctx);
}

static ph_code show(ph_text key) {
  ph_text stored;
  const ph_code code = ph_kv_get(key, &stored);
  if (code == PH_NOT_FOUND) return ph_json_error(404, "there is no such entry");
  PH_TRY(code);
  return ph_respond(200, ph_object({"Content-Type", ph_string("application/json")}), stored);
}

static ph_code remove_entry(const ph_context *ctx, ph_text key) {
  const ph_text wanted = ph_config("moderator_key");
  bool removed;
  if (ph_is_absent(wanted) || !ph_equal(ph_header(ctx, "X-Moderator-Key"), wanted))
    return ph_json_error(403, "the moderator key is needed");
  PH_TRY(ph_kv_delete(key, &removed));
  return removed ? ph_respond(204, NULL, "") : ph_json_error(404, "there is no such entry");
}

static ph_code one_entry(const ph_context *ctx) {
  const ph_text key = ph_concat(PREFIX, ph_param(ctx, "id"));
  return ph_equal(ctx->http->method, "DELETE") ? remove_entry(ctx, key) : show(key);
}
