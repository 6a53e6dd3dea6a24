#include "plugin_host.h"

static ph_code menu(const ph_context *ctx) {
  const ph_text day = ctx->message->arg_count > 0 ? ctx->message->args[0] : PH_TEXT("today");
  ph_file file;
  PH_TRY(ph_file_store(
    "menu.txt", "text/plain", "document", ph_concat(ph_concat("Menu of ", day), ": soup"), &file));
  ph_message *reply = ph_new_message(ph_concat(ph_concat("Here is the menu of ", day), "."));
  return ph_reply(ph_message_file(reply, &file, "Menu"));
}

const ph_plugin plugin = {
  .id = "template-plugin",
  .name = "Template Plugin",
  .version = "0.1.0",
  .requirements = PH_REQUIREMENTS(PH_FILE("Sends the menu as a file")),
  .triggers = PH_TRIGGERS({
    .name = "menu",
    .type = PH_TRIGGER_MESSENGER,
    .description = "The menu of a day",
    .handler = menu,
  }),
};
