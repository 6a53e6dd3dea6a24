/* Two triggers of one handler, without any permission: it answers with what the request brought along. */
#include "plugin_host.h"

static ph_code greet(const ph_context *ctx);

const ph_plugin plugin = {
  .id = "hello",
  .name = "Hello",
  .version = "1.0.0",
  .triggers = PH_TRIGGERS(
    {
      .name = "greet",
      .type = PH_TRIGGER_HTTP,
      .path = "/greet",
      .methods = {"GET", "POST"},
      .description = "Greets and echoes what the request brought along",
      .access = PH_PUBLIC("It shows nothing but what the caller sent"),
      .handler = greet,
    },
    {
      .name = "greet_name",
      .type = PH_TRIGGER_HTTP,
      .path = "/greet/:name",
      .methods = {"GET"},
      .description = "Greets the name in the path",
      .access = PH_PUBLIC("It shows nothing but what the caller sent"),
      .handler = greet,
    }),
};

static ph_code greet(const ph_context *ctx) {
  const ph_request *r = ctx->http;
  ph_text name = ph_or(ph_param(ctx, "name"), ph_query(ctx, "name"));
  if (name.length == 0) name = PH_TEXT("world");
  const ph_value *principal = r->auth == NULL ? NULL : ph_object(
    {"kind", ph_string(r->auth->kind)},
    {"user_id", ph_int(r->auth->user_id)},
    {"service_key_id", ph_int(r->auth->service_key_id)});
  return ph_json(200, ph_object(
    {"message", ph_string(ph_concat(ph_concat("Hello, ", name), "!"))},
    {"method", ph_string(r->method)},
    {"path", ph_string(r->path)},
    {"query", r->query},
    {"body", ph_string(ph_equal(r->method, "POST") ? ph_body(ctx) : PH_TEXT(""))},
    {"principal", principal}));
}
