/* A command of messengers: a reply with files, those that came with the command too, and a call of another plugin. */
#include "plugin_host.h"

static ph_code menu(const ph_context *ctx);

const ph_plugin plugin = {
  .id = "menu",
  .name = "Canteen menu",
  .version = "1.0.0",
  .requirements = PH_REQUIREMENTS(
    PH_FILE(
      "Sends the menu as a file, and takes pictures of dishes",
      .config = PH_CONFIG(
        PH_STRING("dishes", "Dishes of today, separated by semicolons", .required = true),
        PH_STRING("place", "Where the canteen is, as the plugin weather knows it"))),
    PH_PLUGIN_DEP("weather", "Tells whether it is warm enough to eat outside")),
  .triggers = PH_TRIGGERS({
    .name = "menu",
    .type = PH_TRIGGER_MESSENGER,
    .description = "Shows what the canteen offers today",
    .handler = menu,
  }),
};

enum { HOUR_MS = 3600000 };

/* A line with the temperature; empty when the plugin weather cannot tell it. */
static ph_text outside(void) {
  const ph_text place = ph_config("place");
  const ph_value *answer;
  if (ph_is_absent(place)) return PH_TEXT("");
  if (ph_call_plugin("weather", "temperature", ph_object({"place", ph_string(place)}), &answer) == PH_OK)
    return ph_format("\nOutside: %s C", ph_as_text(ph_get(answer, "temperature")).data);
  ph_log_error(ph_concat("weather: ", ph_last_error()->text));
  return PH_TEXT("");
}

/* Answers the command with the dishes as text and as a file, and the temperature outside. */
static ph_code menu(const ph_context *ctx) {
  ph_text text = PH_TEXT("Today in the canteen:");
  ph_text list = PH_TEXT("");
  ph_text rest = ph_config("dishes");
  ph_text part;
  while (ph_split(&rest, ";", &part)) {
    const ph_text dish = ph_trim(part);
    text = ph_concat(ph_concat(text, "\n- "), dish);
    list = ph_concat(ph_concat(list, dish), "\n");
  }
  ph_file file;
  PH_TRY(ph_file_store_with_ttl("menu.txt", "text/plain", "document", list, HOUR_MS, &file));
  ph_message *message = ph_message_file(ph_new_message(ph_concat(text, outside())), &file, "The menu");
  for (size_t k = 0; k < ctx->message->file_count; k++)
    ph_message_file(message, &ctx->message->files[k], "Thank you for the picture");
  return ph_reply(message);
}
