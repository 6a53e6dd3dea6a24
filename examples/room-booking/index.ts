import {
  ConfigFields,
  type Context,
  definePlugin,
  KV,
  type KVUpdate,
  StringField,
  TriggerHTTP,
  Users,
} from 'plugin-host';

/** Rooms by the hour: a booking of several hours is made whole or not at all, and no hour is given twice. */
definePlugin({
  ID: 'room-booking',
  Name: 'Room booking',
  Version: '1.0.0',
  Requirements: [
    KV('Keeps who has booked which room')
      .WithConfig(ConfigFields(StringField('rooms', 'Rooms that can be booked, like A-101, A-102').Required()))
      .Build(),
  ],
  Triggers: [
    {
      Name: 'day',
      Type: TriggerHTTP,
      Path: '/days/:day',
      Methods: ['GET'],
      Description: 'Shows which rooms are booked on a day',
      Access: Users('Users look for a free room'),
      Handler: day,
    },
    {
      Name: 'booking',
      Type: TriggerHTTP,
      Path: '/days/:day/:room',
      Methods: ['POST', 'DELETE'],
      Description: 'Books a room for some hours, or gives them back',
      Access: Users('Staff and student groups book rooms').Policy(
        'has_any_role("teacher", "staff", "student_council")',
      ),
      Handler: booking,
    },
  ],
});

const [OPENS, CLOSES] = [8, 22];
/** Bookings of a day are forgotten a month after it. */
const DAY_SECONDS = 86_400;
const KEPT_SECONDS = 31 * DAY_SECONDS;
const PURPOSE_CHARS = 200;

type Booking = { id: string; user: string; purpose: string };

/** What stands for a moment at an hour that was given back. */
const FREE = '';
const YEARS_MAX = 10;
type Hours = { from: number; to: number };

const hourKey = (day: string, room: string, hour: number): string => `${day}:${room}:${String(hour).padStart(2, '0')}`;

const roomsOf = (ctx: Context): string[] =>
  (ctx.Config('rooms') ?? '')
    .split(',')
    .map(room => room.trim())
    // A colon divides the parts of a key.
    .filter(room => room !== '' && !room.includes(':'));

/** The day of the path, as seconds since 1970; null when it is none. */
function secondsOf(day: string): number | null {
  const at = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(`${day}T00:00:00Z`) : Number.NaN;
  return Number.isNaN(at) ? null : at / 1000;
}

function day(ctx: Context): void {
  const { day = '' } = ctx.HTTP.Params;
  if (secondsOf(day) === null) return ctx.JSON(400, { error: `${day} is no day like 2026-12-01` });
  const bookings: object[] = [];
  for (let after = ''; ; ) {
    const { keys, next } = ctx.KVList(`${day}:`, after, 100);
    for (const [n, value] of ctx.KVGetMany(keys).entries()) {
      if (value === null || value === FREE) continue;
      const [, room, hour] = (keys[n] ?? '').split(':');
      const { purpose }: Booking = JSON.parse(value);
      bookings.push({ room, hour: Number(hour), purpose });
    }
    if (next === null) break;
    after = next;
  }
  ctx.JSON(200, { rooms: roomsOf(ctx), opens: OPENS, closes: CLOSES, bookings });
}

/** The hours in the body; null when there are none that can be booked. */
function hoursOf(given: Partial<Hours>): Hours | null {
  const { from = Number.NaN, to = Number.NaN } = given;
  const isRight = Number.isInteger(from) && Number.isInteger(to) && from >= OPENS && from < to && to <= CLOSES;
  return isRight ? { from, to } : null;
}

/** What the body says; without members when it is no JSON. */
function sent(ctx: Context): Partial<Hours & { purpose: unknown }> {
  try {
    return Object(ctx.HTTP.JSON<unknown>());
  } catch {
    return {};
  }
}

function booking(ctx: Context): void {
  const { Auth, Method, Params } = ctx.HTTP;
  const { day = '', room = '' } = Params;
  if (Auth?.Kind !== 'user') return ctx.JSON(401, { error: 'log in first' });
  const begins = secondsOf(day);
  if (begins === null) return ctx.JSON(400, { error: `${day} is no day like 2026-12-01` });
  if (!roomsOf(ctx).includes(room)) return ctx.JSON(404, { error: `there is no room ${room}` });
  const given = sent(ctx);
  const hours = hoursOf(given);
  if (hours === null) return ctx.JSON(400, { error: `send {"from": ${OPENS}, "to": ${CLOSES}} with whole hours` });
  const user = String(Auth.UserID);
  const keys = Array.from({ length: hours.to - hours.from }, (_, k) => hourKey(day, room, hours.from + k));
  if (Method === 'DELETE') return giveBack(ctx, user, keys);
  const purpose = typeof given.purpose === 'string' ? given.purpose.slice(0, PURPOSE_CHARS) : '';
  const ttl = Math.ceil(begins + KEPT_SECONDS - Date.now() / 1000);
  if (ttl <= KEPT_SECONDS - 2 * DAY_SECONDS) return ctx.JSON(422, { error: `${day} is over` });
  if (ttl > YEARS_MAX * 366 * DAY_SECONDS)
    return ctx.JSON(422, { error: `${day} is more than ${YEARS_MAX} years ahead` });
  book(ctx, keys, JSON.stringify({ id: ctx.RequestID, user, purpose }), ttl);
}

/** Claims an hour that has no booking, or that was given back a moment ago. */
function claimHour(ctx: Context, key: string, value: string, ttl: number): KVUpdate {
  for (;;) {
    const absent = ctx.KVSetIfAbsent(key, value, ttl);
    if (absent.written || absent.present !== FREE) return absent;
    const free = ctx.KVCompareAndSet(key, FREE, value, ttl);
    // What stood for it may have gone in between: then it is absent.
    if (free.written || free.present !== null) return free;
  }
}

/** Each hour is claimed by itself; when one is taken, those claimed before are given back. */
function book(ctx: Context, keys: readonly string[], value: string, ttl: number): void {
  for (const [k, key] of keys.entries()) {
    const claim = claimHour(ctx, key, value, ttl);
    if (claim.written) continue;
    for (const mine of keys.slice(0, k)) free(ctx, mine, value);
    const { purpose }: Booking = JSON.parse(claim.present || '{"purpose":""}');
    return ctx.JSON(409, { error: `${Number(key.slice(-2))}:00 is booked${purpose === '' ? '' : `: ${purpose}`}` });
  }
  ctx.JSON(201, { booked: keys.length });
}

/** Frees an hour only while it still has this very booking: another one may have come meanwhile. */
const free = (ctx: Context, key: string, booking: string): boolean =>
  ctx.KVCompareAndSet(key, booking, FREE, 1).written;

/** Only hours of the user. */
function giveBack(ctx: Context, user: string, keys: readonly string[]): void {
  let freed = 0;
  for (const [k, value] of ctx.KVGetMany(keys).entries()) {
    if (value === null || value === FREE) continue;
    const booked: Booking = JSON.parse(value);
    if (booked.user === user && free(ctx, keys[k] ?? '', value)) freed++;
  }
  if (freed === 0) return ctx.JSON(404, { error: 'none of these hours is booked by you' });
  ctx.JSON(200, { given_back: freed });
}
