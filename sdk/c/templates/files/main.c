#include "plugin_host.h"

/* Gets {"file_id": "..."}, the id of a file that was uploaded through /api/files/. */
static ph_code count(const ph_context *ctx) {
  const ph_text id = ph_get_string(ph_body_or_null(ctx), "file_id");
  if (id.length == 0) return ph_json_error(400, "send {\"file_id\": ...}");
  ph_file file;
  const ph_code code = ph_file_meta(id, &file);
  if (code == PH_NOT_FOUND) return ph_json_error(404, "there is no such file");
  PH_TRY(code);
  ph_text content;
  PH_TRY(ph_file_read_all(id, &content));
  int64_t lines = 1;
  for (size_t k = 0; k < content.length; k++) lines += content.data[k] == '\n';
  return ph_json(200, ph_object({"name", ph_string(file.name)}, {"lines", ph_int(lines)}));
}

const ph_plugin plugin = {
  .id = "template-plugin",
  .name = "Template Plugin",
  .version = "0.1.0",
  .requirements = PH_REQUIREMENTS(PH_FILE("Reads the files that are handed in")),
  .triggers = PH_TRIGGERS({
    .name = "count",
    .type = PH_TRIGGER_HTTP,
    .path = "/lines",
    .methods = {"POST"},
    .description = "Counts the lines of an uploaded file",
    .access = PH_USERS("Users may have their files counted"),
    .handler = count,
  }),
};
