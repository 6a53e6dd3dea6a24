import { ConfigFields, type Context, definePlugin, KV, StringField, TriggerHTTP, Users } from '@plugin-host/sdk';

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

type Booking = { user: string; purpose: string };
/** What a room has on a day, by the hour: one value, so that a booking of several hours is one change. */
type Plan = Record<number, Booking>;
const YEARS_MAX = 10;
type Hours = { from: number; to: number };

const planKey = (day: string, room: string): string => `plan:${day}:${room}`;

const roomsOf = (ctx: Context): string[] =>
  (ctx.Config('rooms') ?? '')
    .split(',')
    .map(room => room.trim())
    .filter(room => room !== '');

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
    const { keys, next } = ctx.KVList(planKey(day, ''), after, 100);
    for (const [n, value] of ctx.KVGetMany(keys).entries()) {
      const room = keys[n]?.slice(planKey(day, '').length);
      const plan: Plan = JSON.parse(value ?? '{}');
      for (const [hour, { purpose }] of Object.entries(plan)) bookings.push({ room, hour: Number(hour), purpose });
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
  const ttl = Math.ceil(begins + KEPT_SECONDS - Date.now() / 1000);
  if (ttl <= KEPT_SECONDS - 2 * DAY_SECONDS) return ctx.JSON(422, { error: `${day} is over` });
  if (ttl > YEARS_MAX * 366 * DAY_SECONDS)
    return ctx.JSON(422, { error: `${day} is more than ${YEARS_MAX} years ahead` });
  const user = String(Auth.UserID);
  const asked = Array.from({ length: hours.to - hours.from }, (_, k) => hours.from + k);
  const purpose = typeof given.purpose === 'string' ? given.purpose.slice(0, PURPOSE_CHARS) : '';
  changePlan(ctx, planKey(day, room), ttl, plan =>
    Method === 'DELETE' ? giveBack(plan, user, asked) : book(plan, { user, purpose }, asked),
  );
}

type Changed = { /** What to store; null leaves it as it is. */ plan: Plan | null; status: number; body: object };

/** Changes what a room has on a day. When another change comes in between, it is made once more on what stands then. */
function changePlan(ctx: Context, key: string, ttl: number, change: (plan: Plan) => Changed): void {
  for (;;) {
    const before = ctx.KVGet(key);
    const { body, plan, status } = change(before === null ? {} : JSON.parse(before));
    if (plan === null) return ctx.JSON(status, body);
    const after = JSON.stringify(plan);
    const { written } =
      before === null ? ctx.KVSetIfAbsent(key, after, ttl) : ctx.KVCompareAndSet(key, before, after, ttl);
    if (written) return ctx.JSON(status, body);
  }
}

function book(plan: Plan, booking: Booking, hours: readonly number[]): Changed {
  const taken = hours.find(hour => plan[hour] !== undefined);
  if (taken === undefined) {
    const booked = Object.fromEntries(hours.map(hour => [hour, booking]));
    return { plan: { ...plan, ...booked }, status: 201, body: { booked: hours.length } };
  }
  const purpose = plan[taken]?.purpose ?? '';
  const error = `${taken}:00 is booked${purpose === '' ? '' : `: ${purpose}`}`;
  return { plan: null, status: 409, body: { error } };
}

/** Only hours of the user. */
function giveBack(plan: Plan, user: string, hours: readonly number[]): Changed {
  const own = new Set(hours.filter(hour => plan[hour]?.user === user));
  if (own.size === 0) return { plan: null, status: 404, body: { error: 'none of these hours is booked by you' } };
  const left = Object.entries(plan).filter(([hour]) => !own.has(Number(hour)));
  return { plan: Object.fromEntries(left), status: 200, body: { given_back: own.size } };
}
