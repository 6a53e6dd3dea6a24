/* A box of files for each user, with a page in a browser: uploads, links, notes, and files read in parts. */
#include <stdlib.h>
#include <string.h>
#include "fnv.h"
#include "plugin_host.h"

static ph_code files(const ph_context *ctx);
static ph_code file(const ph_context *ctx);
static ph_code file_link(const ph_context *ctx);
static ph_code file_checksum(const ph_context *ctx);
static ph_code notes(const ph_context *ctx);

const ph_plugin plugin = {
  .id = "filebox",
  .name = "Filebox",
  .version = "1.0.0",
  .requirements = PH_REQUIREMENTS(
    PH_FILE("Keeps the files users upload, and stores notes of its own"),
    PH_KV("Remembers whose box holds which file")),
  .triggers = PH_TRIGGERS(
    {
      .name = "files",
      .type = PH_TRIGGER_HTTP,
      .path = "/files",
      .methods = {"GET", "POST"},
      .description = "Lists the box, or puts uploaded files into it",
      .handler = files,
    },
    {
      .name = "file",
      .type = PH_TRIGGER_HTTP,
      .path = "/files/:id",
      .methods = {"GET", "DELETE"},
      .description = "Gives the content of a file, or takes it out of the box",
      .handler = file,
    },
    {
      .name = "link",
      .type = PH_TRIGGER_HTTP,
      .path = "/files/:id/link",
      .methods = {"GET"},
      .description = "Gives an address the file can be read at for some minutes",
      .handler = file_link,
    },
    {
      .name = "checksum",
      .type = PH_TRIGGER_HTTP,
      .path = "/files/:id/checksum",
      .methods = {"GET"},
      .description = "Reads a file of any size in chunks, a part of it with each call",
      .handler = file_checksum,
    },
    {
      .name = "notes",
      .type = PH_TRIGGER_HTTP,
      .path = "/notes",
      .methods = {"POST"},
      .description = "Stores a text as a file",
      .handler = notes,
    }),
};

enum {
  CHUNK = 1 << 20,
  /* What one execution reads at most; it stays below the host's 64 MB. */
  WINDOW = 48 << 20,
};

/* Lets users in alone, and runs a handler with what the keys of the user's box begin with. */
static ph_code in_box(const ph_context *ctx, ph_code (*handle)(const ph_context *ctx, ph_text box)) {
  const ph_auth *auth = ctx->http->auth;
  if (auth == NULL || !ph_equal(auth->kind, "user")) return ph_json_error(401, "log in to have a box");
  const ph_code code = handle(ctx, ph_format("box:%lld:", auth->user_id));
  if (code == PH_OK) return PH_OK;
  return ph_json_error(code == PH_NOT_FOUND ? 404 : 502, ph_last_error()->text);
}

/*
 * The id in the path, of a file in the box; PH_NOT_FOUND for one that is not there. The host lets no user read what
 * another one has uploaded, but notes are the plugin's own files, and whose they are is known here alone.
 */
static ph_code held(const ph_context *ctx, ph_text box, ph_text *id) {
  ph_text value;
  *id = ph_param(ctx, "id");
  return ph_kv_get(ph_concat(box, *id), &value);
}

static ph_code list(const ph_context *ctx, ph_text box) {
  ph_keys page;
  PH_TRY(ph_kv_list(box, "", 200, &page));
  ph_value *found = ph_array();
  for (size_t k = 0; k < page.count; k++) {
    ph_file meta;
    const ph_code code = ph_file_meta(ph_strip_prefix(page.keys[k], box), &meta);
    // It was deleted, or its time has passed.
    if (code == PH_NOT_FOUND) {
      PH_TRY(ph_kv_delete(page.keys[k], NULL));
      continue;
    }
    PH_TRY(code);
    ph_append(found, ph_file_value(&meta));
  }
  return ph_json(200, ph_object({"files", found}));
}

static ph_code add(const ph_context *ctx, ph_text box) {
  const ph_value *sent = ph_body_or_null(ctx);
  const ph_value *one = ph_get(sent, "file_id");
  const ph_value *several = ph_get(sent, "file_ids");
  ph_value *ids = ph_array();
  for (size_t k = 0; k < ph_count(several); k++) ph_append(ids, ph_item(several, k));
  if (one != NULL) ph_append(ids, one);
  const size_t count = ph_count(ids);
  if (count == 0)
    return ph_json_error(400, "send {\"file_id\": ...} or {\"file_ids\": [...]} of completed uploads");
  ph_file *metas = ph_alloc(count * sizeof *metas);
  for (size_t k = 0; k < count; k++) {
    const ph_text id = ph_as_text(ph_item(ids, k));
    const ph_code code = ph_file_meta(id, &metas[k]);
    if (code == PH_NOT_FOUND) return ph_json_error(404, ph_format("file %s: not found", id.data));
    PH_TRY(code);
  }
  ph_value *added = ph_array();
  for (size_t k = 0; k < count; k++) {
    PH_TRY(ph_kv_set(ph_concat(box, metas[k].id), "", 0));
    ph_append(added, ph_file_value(&metas[k]));
  }
  return ph_json(201, ph_object({"files", added}));
}

static ph_code files(const ph_context *ctx) { return in_box(ctx, ph_equal(ctx->http->method, "POST") ? add : list); }

static ph_code content(const ph_context *ctx, ph_text box) {
  ph_text id, bytes;
  PH_TRY(held(ctx, box, &id));
  PH_TRY(ph_file_read_all(id, &bytes));
  if (ph_respond(200, ph_object({"Content-Type", ph_string("application/octet-stream")}), bytes) == PH_OK) return PH_OK;
  return ph_json_error(413, "the file is too large to be answered whole; use its link");
}

static ph_code take_out(const ph_context *ctx, ph_text box) {
  bool removed;
  PH_TRY(ph_kv_delete(ph_concat(box, ph_param(ctx, "id")), &removed));
  return removed ? ph_respond(204, NULL, "") : ph_json_error(404, "not found");
}

static ph_code file(const ph_context *ctx) {
  return in_box(ctx, ph_equal(ctx->http->method, "DELETE") ? take_out : content);
}

static ph_code link_to(const ph_context *ctx, ph_text box) {
  ph_text id, url;
  PH_TRY(held(ctx, box, &id));
  PH_TRY(ph_file_url(id, &url));
  return ph_json(200, ph_object({"url", ph_string(url)}));
}

static ph_code file_link(const ph_context *ctx) { return in_box(ctx, link_to); }

/* A number in the query; one that is not given stays as it is. @returns false for text that is no number */
static bool read_number(const ph_context *ctx, const char *name, uint64_t *number) {
  const ph_text text = ph_query(ctx, name);
  if (text.length == 0) return true;
  *number = strtoull(text.data, NULL, 10);
  return strspn(text.data, "0123456789") == text.length;
}

/* Carried on from call to call with ?offset and ?state. */
static ph_code checksum(const ph_context *ctx, ph_text box) {
  ph_text id;
  PH_TRY(held(ctx, box, &id));
  uint64_t offset = 0;
  uint64_t state = FNV_START;
  if (!read_number(ctx, "offset", &offset)) return ph_json_error(400, "the offset is no number");
  if (!read_number(ctx, "state", &state)) return ph_json_error(400, "the state is no number");
  char *chunk = ph_alloc(CHUNK);
  bool is_end = false;
  for (const uint64_t end = offset + WINDOW; offset < end && !is_end;) {
    size_t length;
    PH_TRY(ph_file_read_into(id, (int64_t)offset, chunk, CHUNK, &length, &is_end));
    state = fnv(state, chunk, length);
    offset += length;
  }
  return ph_json(200, ph_object(
    {"offset", ph_int((int64_t)offset)},
    {"state", ph_string(ph_format("%llu", state))},
    {"eof", ph_bool(is_end)}));
}

static ph_code file_checksum(const ph_context *ctx) { return in_box(ctx, checksum); }

static ph_code add_note(const ph_context *ctx, ph_text box) {
  // What is no JSON is a note without a name, which the host refuses.
  const ph_value *sent = ph_body_or_null(ctx);
  int64_t lasts_ms = 0;
  ph_as_int(ph_get(sent, "ttl_ms"), &lasts_ms);
  const ph_text name = ph_or(ph_get_string(sent, "name"), "");
  ph_file note;
  const ph_code code = ph_file_store_with_ttl(
    name, "text/plain; charset=utf-8", "document", ph_get_string(sent, "text"), lasts_ms, &note);
  if (code != PH_OK) return ph_json_error(422, ph_last_error()->text);
  PH_TRY(ph_kv_set(ph_concat(box, note.id), "", 0));
  return ph_json(201, ph_file_value(&note));
}

static ph_code notes(const ph_context *ctx) { return in_box(ctx, add_note); }
