/* Slots that only one person may have each, however many ask at once: conditional writes and a counter. */
#include "plugin_host.h"

static ph_code list(const ph_context *ctx);
static ph_code change(const ph_context *ctx);

const ph_plugin plugin = {
  .id = "booking",
  .name = "Consultation hours",
  .version = "1.0.0",
  .requirements = PH_REQUIREMENTS(PH_KV("Keeps who has booked which slot")),
  .triggers = PH_TRIGGERS(
    {
      .name = "slots",
      .type = PH_TRIGGER_HTTP,
      .path = "/slots",
      .methods = {"GET"},
      .description = "Lists the slots and who has booked them",
      .handler = list,
    },
    {
      .name = "slot",
      .type = PH_TRIGGER_HTTP,
      .path = "/slots/:number",
      .methods = {"POST", "DELETE"},
      .description = "Books a slot, or gives it up",
      .handler = change,
    }),
};

enum { SLOTS = 40 };
#define BOOKED "bookings"
/* The value of a slot that was given up; no user has this name. */
#define FREE ""

static ph_text key_of(int64_t slot) { return ph_format("slot:%lld", slot); }

/* A slot as callers see it: booked by null when it is free. */
static ph_value *shown(int64_t slot, ph_text name) {
  return ph_object({"slot", ph_int(slot)}, {"booked_by", ph_equal(name, FREE) ? NULL : ph_string(name)});
}

/* All slots with two calls of the host, however many there are. */
static ph_code list(const ph_context *ctx) {
  ph_text keys[SLOTS], names[SLOTS];
  int64_t booked;
  for (int k = 0; k < SLOTS; k++) keys[k] = key_of(k + 1);
  PH_TRY(ph_kv_get_many(keys, SLOTS, names));
  PH_TRY(ph_kv_increment(BOOKED, 0, 0, &booked));
  ph_value *slots = ph_array();
  for (int k = 0; k < SLOTS; k++) ph_append(slots, shown(k + 1, names[k]));
  return ph_json(200, ph_object({"booked", ph_int(booked)}, {"slots", slots}));
}

/* Changes how many slots are booked. A booking stands even if it could not be counted. */
static void count(int64_t change) {
  if (ph_kv_increment(BOOKED, change, 0, NULL) != PH_OK)
    ph_log_error(ph_concat("counting bookings: ", ph_last_error()->text));
}

/* Reading the slot and then writing it would let two people in between: each of these calls is one step. */
static ph_code book(int64_t slot, ph_text name) {
  ph_kv_update claim;
  PH_TRY(ph_kv_set_if_absent(key_of(slot), name, 0, &claim));
  if (!claim.written && ph_equal(claim.present, FREE))
    PH_TRY(ph_kv_compare_and_set(key_of(slot), FREE, name, 0, &claim));
  if (!claim.written) return ph_json_error(409, ph_format("slot %lld is booked", slot));
  count(1);
  return ph_json(201, shown(slot, name));
}

/* Only the person who has booked a slot gives it up, whatever happens at the same time. */
static ph_code release(int64_t slot, ph_text name) {
  ph_kv_update given;
  PH_TRY(ph_kv_compare_and_set(key_of(slot), name, FREE, 0, &given));
  if (!given.written) return ph_json_error(409, ph_format("slot %lld is not booked by you", slot));
  count(-1);
  return ph_json(200, shown(slot, PH_TEXT(FREE)));
}

static ph_code change(const ph_context *ctx) {
  const ph_text number = ph_param(ctx, "number");
  int64_t slot;
  // 07 is no other name of slot 7.
  if (!ph_to_int(number, &slot) || slot < 1 || slot > SLOTS || ph_starts_with(number, "0"))
    return ph_json_error(404, ph_format("there are slots 1 to %d", SLOTS));
  const ph_text name = ph_get_string(ph_body_or_null(ctx), "name");
  if (name.length == 0) return ph_json_error(400, "send {\"name\": ...}");
  return ph_equal(ctx->http->method, "DELETE") ? release(slot, name) : book(slot, name);
}
