#include "plugin_host.h"

static ph_code greet(const ph_context *ctx) {
  const ph_text name = ph_param(ctx, "name");
  int64_t times;
  PH_TRY(ph_kv_increment(ph_concat("greeted:", name), 1, 0, &times));
  const ph_text message = ph_concat(ph_concat("Hello, ", name), "!");
  return ph_json(200, ph_object({"message", ph_string(message)}, {"times", ph_int(times)}));
}

const ph_plugin plugin = {
  .id = "template-plugin",
  .name = "Template Plugin",
  .version = "0.1.0",
  .requirements = PH_REQUIREMENTS(PH_KV("Counts who was greeted")),
  .triggers = PH_TRIGGERS({
    .name = "greet",
    .type = PH_TRIGGER_HTTP,
    .path = "/greet/:name",
    .methods = {"GET"},
    .description = "Greets, and counts how often",
    .access = PH_USERS("Users may be greeted"),
    .handler = greet,
  }),
};
