import { type Context, definePlugin, KV, TriggerHTTP } from '@plugin-host/sdk';

/** Slots that only one person may have each, however many ask at once: conditional writes and a counter. */
definePlugin({
  ID: 'booking',
  Name: 'Consultation hours',
  Version: '1.0.0',
  Requirements: [KV('Keeps who has booked which slot').Build()],
  Triggers: [
    {
      Name: 'slots',
      Type: TriggerHTTP,
      Path: '/slots',
      Methods: ['GET'],
      Description: 'Lists the slots and who has booked them',
      Handler: slots,
    },
    {
      Name: 'slot',
      Type: TriggerHTTP,
      Path: '/slots/:number',
      Methods: ['POST', 'DELETE'],
      Description: 'Books a slot, or gives it up',
      Handler: change,
    },
  ],
});

const SLOTS = Array.from({ length: 40 }, (_, k) => k + 1);
const BOOKED = 'bookings';
/** A slot that was given up; no user has this name. */
const FREE = '';

const keyOf = (slot: number): string => `slot:${slot}`;

/** All slots with two calls of the host, however many there are. */
function slots(ctx: Context): void {
  const names = ctx.KVGetMany(SLOTS.map(keyOf));
  ctx.JSON(200, {
    booked: ctx.KVIncrement(BOOKED, 0),
    slots: SLOTS.map((slot, k) => ({ slot, booked_by: names[k] || null })),
  });
}

/** The name in the body; empty when there is none. */
function sentName(ctx: Context): string {
  try {
    const { name } = ctx.HTTP.JSON<{ name?: unknown }>();
    return typeof name === 'string' ? name : '';
  } catch {
    return '';
  }
}

function change(ctx: Context): void {
  const slot = SLOTS.find(s => String(s) === ctx.HTTP.Params.number);
  if (slot === undefined) return ctx.JSON(404, { error: `there are slots 1 to ${SLOTS.length}` });
  const name = sentName(ctx);
  if (name === '') return ctx.JSON(400, { error: 'send {"name": ...}' });
  if (ctx.HTTP.Method === 'DELETE') release(ctx, slot, name);
  else book(ctx, slot, name);
}

/** Reading the slot and then writing it would let two people in between: each of these is one step. */
function book(ctx: Context, slot: number, name: string): void {
  let claim = ctx.KVSetIfAbsent(keyOf(slot), name);
  if (!claim.written && claim.present === FREE) claim = ctx.KVCompareAndSet(keyOf(slot), FREE, name);
  if (!claim.written) return ctx.JSON(409, { error: `slot ${slot} is booked` });
  count(ctx, 1);
  ctx.JSON(201, { slot, booked_by: name });
}

/** Only who has booked a slot gives it up, whatever happens at the same time. */
function release(ctx: Context, slot: number, name: string): void {
  if (!ctx.KVCompareAndSet(keyOf(slot), name, FREE).written)
    return ctx.JSON(409, { error: `slot ${slot} is not booked by you` });
  count(ctx, -1);
  ctx.JSON(200, { slot, booked_by: null });
}

/** A booking stands even if it could not be counted. */
function count(ctx: Context, change: number): void {
  try {
    ctx.KVIncrement(BOOKED, change);
  } catch (error) {
    ctx.LogError(`counting bookings: ${error}`);
  }
}
