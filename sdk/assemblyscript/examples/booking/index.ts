import { arr, Context, Json, KV, KVUpdate, obj, Plugin, Result } from "@plugin-host/sdk";

const SLOTS: i32 = 40;
const BOOKED = "bookings";
/** A slot that was given up; no user has this name. */
const FREE = "";

Plugin("booking", "Consultation hours", "1.0.0")
  .Requires(KV("Keeps who has booked which slot").Build())
  .HTTP("slots", "/slots", ["GET"], slots, "Lists the slots and who has booked them")
  .HTTP("slot", "/slots/:number", ["POST", "DELETE"], slot, "Books a slot, or gives it up");

function error(ctx: Context, status: i32, text: string): void {
  ctx.JSON(status, obj().str("error", text));
}

function keyOf(slot: i32): string {
  return "slot:" + slot.toString();
}

/** All slots with two calls of the host, however many there are. */
function slots(ctx: Context): void {
  const keys: string[] = [];
  for (let n = 1; n <= SLOTS; n++) keys.push(keyOf(n));
  const found = ctx.KVGetMany(keys);
  if (!found.ok) return error(ctx, 500, found.error!);
  const items: string[] = [];
  for (let n = 1; n <= SLOTS; n++) {
    const name = found.value[n - 1];
    const item = obj().num("slot", n);
    items.push((name === null || name == FREE ? item.raw("booked_by", "null") : item.str("booked_by", name!)).toString());
  }
  const booked = ctx.KVIncrement(BOOKED, 0);
  if (!booked.ok) return error(ctx, 500, booked.error!);
  ctx.JSON(200, obj().num("booked", booked.value).raw("slots", arr(items)));
}

function slot(ctx: Context): void {
  const number = ctx.HTTP.Param("number");
  const n = <i32>I64.parseInt(number);
  if (n < 1 || n > SLOTS || n.toString() != number) return error(ctx, 404, "there are slots 1 to " + SLOTS.toString());
  const name = Json.parseText(ctx.HTTP.Body).str("name");
  if (!name.length) return error(ctx, 400, "send {\"name\": ...}");
  if (ctx.HTTP.Method == "DELETE") return release(ctx, n, name);
  const booking = book(ctx, keyOf(n), name);
  if (!booking.ok) return error(ctx, 500, booking.error!);
  if (!booking.value.written) return error(ctx, 409, "slot " + number + " is booked");
  const counted = ctx.KVIncrement(BOOKED);
  if (!counted.ok) ctx.LogError("counting bookings: " + counted.error!);
  ctx.JSON(201, obj().num("slot", n).str("booked_by", name));
}

/** Reading the slot and then writing it would let two people in between: each of these is one step. */
function book(ctx: Context, key: string, name: string): Result<KVUpdate> {
  const first = ctx.KVSetIfAbsent(key, name);
  if (!first.ok || first.value.written || first.value.present != FREE) return first;
  return ctx.KVCompareAndSet(key, FREE, name);
}

/** Only who has booked a slot gives it up, whatever happens at the same time. */
function release(ctx: Context, n: i32, name: string): void {
  const given = ctx.KVCompareAndSet(keyOf(n), name, FREE);
  if (!given.ok) return error(ctx, 500, given.error!);
  if (!given.value.written) return error(ctx, 409, "slot " + n.toString() + " is not booked by you");
  const counted = ctx.KVIncrement(BOOKED, -1);
  if (!counted.ok) ctx.LogError("counting bookings: " + counted.error!);
  ctx.JSON(200, obj().num("slot", n).raw("booked_by", "null"));
}
