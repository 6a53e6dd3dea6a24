/* The greeter of the benchmark in C: JSON in, JSON out. */
#include <stdint.h>
#include <stdlib.h>

#include "plugin_host.h"

static ph_text name_of(const ph_context *ctx) { return ph_or(ph_query(ctx, "name"), "world"); }

static ph_value *greeting(const ph_context *ctx) { return ph_string(ph_concat("Hello, ", ph_concat(name_of(ctx), "!"))); }

static ph_code greet(const ph_context *ctx) { return ph_json(200, ph_object({"message", greeting(ctx)})); }

static ph_code visit(const ph_context *ctx) {
  const ph_text key = ph_concat("visits:", name_of(ctx));
  ph_text before;
  const ph_code code = ph_kv_get(key, &before);
  if (code != PH_NOT_FOUND) PH_TRY(code);
  const int64_t visits = (code == PH_NOT_FOUND ? 0 : strtoll(before.data, NULL, 10)) + 1;
  PH_TRY(ph_kv_set(key, ph_format("%lld", (long long)visits), 0));
  return ph_json(200, ph_object({"message", greeting(ctx)}, {"visits", ph_int(visits)}));
}

static ph_value *number(void) {
  uint64_t drawn;
  ph_random(&drawn, sizeof drawn);
  return ph_int((int64_t)(drawn >> 11));
}

static ph_code draw(const ph_context *ctx) {
  ph_value *numbers = ph_array();
  ph_append(numbers, number());
  ph_append(numbers, number());
  return ph_json(200, ph_object({"message", greeting(ctx)}, {"numbers", numbers}));
}

#define TRIGGER(called, handles) \
  {.name = called, .type = PH_TRIGGER_HTTP, .path = "/" called, .methods = {"GET"}, .handler = handles}

const ph_plugin plugin = {
  .id = "greeter-c",
  .name = "Greeter (C)",
  .version = "1.0.0",
  .requirements = PH_REQUIREMENTS(PH_KV("Counts visits")),
  .triggers = PH_TRIGGERS(TRIGGER("greet", greet), TRIGGER("visit", visit), TRIGGER("draw", draw)),
};
