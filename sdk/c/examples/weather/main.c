/* Asks another host, with an address and a secret key from the configuration; other plugins may ask it, too. */
#include "plugin_host.h"

static ph_code weather(const ph_context *ctx);
static ph_code temperature(const ph_context *ctx);

const ph_plugin plugin = {
  .id = "weather",
  .name = "Weather",
  .version = "1.0.0",
  .requirements = PH_REQUIREMENTS(PH_HTTP(
    "Asks the weather service for the weather of a place",
    .config = PH_CONFIG(
      PH_STRING(
        "service", "Address of the service, like https://api.weather.example; name its host in network.hosts",
        .required = true),
      PH_STRING("key", "Key of the service", .sensitive = true)))),
  .functions = PH_FUNCTIONS({"temperature", temperature}),
  .triggers = PH_TRIGGERS({
    .name = "weather",
    .type = PH_TRIGGER_HTTP,
    .path = "/places/:place",
    .methods = {"GET"},
    .description = "Tells the weather of a place",
    .handler = weather,
  }),
};

typedef struct {
  /* As the service has written it; NULL when there is none. */
  const ph_value *temperature;
  /* Why there is none, and the status a caller gets. */
  ph_text reason;
  int status;
} current;

static current ask(ph_text place) {
  const ph_text key = ph_config("key");
  ph_value *headers = ph_object({"accept", ph_string("application/json")});
  if (!ph_is_absent(key)) ph_set(headers, "authorization", ph_string(ph_concat("Bearer ", key)));
  const ph_text path = ph_concat("/current?place=", ph_url_encode(place));
  const ph_http_order order = {.url = ph_concat(ph_config("service"), path), .headers = headers, .timeout_ms = 3000};
  ph_http_answer answer;
  if (ph_http_request(&order, &answer) != PH_OK) {
    ph_log_error(ph_concat("the weather service: ", ph_last_error()->text));
    return (current){.status = 502, .reason = PH_TEXT("the weather service cannot be asked")};
  }
  if (answer.status == 404) return (current){.status = 404, .reason = PH_TEXT("the place is not known")};
  const ph_value *body = NULL;
  if (answer.status == 200 && ph_json_parse(answer.body, &body) == PH_OK) {
    const ph_value *found = ph_get(body, "temperature");
    if (ph_kind_of(found) == PH_NUMBER) return (current){.temperature = found};
  }
  return (current){.status = 502, .reason = ph_format("the weather service answered %d", answer.status)};
}

static ph_code weather(const ph_context *ctx) {
  const ph_text place = ph_param(ctx, "place");
  const current now = ask(place);
  if (now.temperature == NULL) return ph_json_error(now.status, now.reason);
  return ph_json(200, ph_object({"place", ph_string(place)}, {"temperature", now.temperature}));
}

/* For other plugins: {"place": name} -> {"temperature": number}. */
static ph_code temperature(const ph_context *ctx) {
  const ph_value *asked;
  PH_TRY(ph_body_json(ctx, &asked));
  const current now = ask(ph_get_string(asked, "place"));
  if (now.temperature == NULL) return ph_fail(now.reason);
  return ph_output(ph_object({"temperature", now.temperature}));
}
