import {
  type Context,
  definePlugin,
  File,
  KV,
  type KVUpdate,
  NewMessage,
  TriggerHTTP,
  TriggerMessenger,
  Users,
} from '@plugin-host/sdk';

/** Office hours of a department: teachers offer slots, each student takes one, and no two get the same. */
definePlugin({
  ID: 'office-hours',
  Name: 'Office hours',
  Version: '1.0.0',
  Requirements: [
    KV('Keeps the slots and who has booked which').Build(),
    File('Gives a booking as a calendar file').Build(),
  ],
  Triggers: [
    {
      Name: 'slots',
      Type: TriggerHTTP,
      Path: '/slots',
      Methods: ['GET'],
      Description: 'Lists the free slots, and the one the caller has',
      Access: Users('Students look for a free slot'),
      Handler: slots,
    },
    {
      Name: 'book',
      Type: TriggerHTTP,
      Path: '/slots/:time',
      Methods: ['POST', 'DELETE'],
      Description: 'Books a slot, or gives it up',
      Access: Users('Students book a slot'),
      Handler: change,
    },
    {
      Name: 'plan',
      Type: TriggerHTTP,
      Path: '/plan',
      Methods: ['GET', 'PUT'],
      Description: 'Shows all slots with their bookings, or adds slots',
      Access: Users('Teachers plan their hours').Policy('has_any_role("teacher", "secretary")'),
      Handler: plan,
    },
    {
      Name: 'slot',
      Type: TriggerMessenger,
      Description: 'Your slot in the office hours, as a calendar file',
      Handler: slot,
    },
  ],
});

/** What stands at a slot that is not booked, and for a moment at a claim that was given up; no user has this id. */
const FREE = '';
const SLOTS_MAX = 200;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d$/;

/** A slot is forgotten a day and a half after it, wherever its time zone is. */
const KEPT_MS = 36 * 3_600_000;

/** How long a slot is kept, in seconds; not above 0 for one that is over. */
const keptSeconds = (time: string): number => Math.ceil((Date.parse(`${time}Z`) + KEPT_MS - Date.now()) / 1000);

const slotKey = (time: string): string => `slot:${time}`;
const userKey = (user: bigint): string => `user:${user}`;

const isTime = (value: unknown): value is string =>
  typeof value === 'string' && TIME.test(value) && !Number.isNaN(Date.parse(`${value}Z`));

/** The user of a request; the host lets in no other callers, unless an administrator opens the trigger. */
function userOf(ctx: Context): bigint | null {
  const { Auth } = ctx.HTTP;
  if (Auth?.Kind === 'user') return Auth.UserID;
  ctx.JSON(401, { error: 'log in first' });
  return null;
}

/** All slots in the order of their times, with the id of the user; null for one that is free. */
function allSlots(ctx: Context): Array<{ time: string; user: string | null }> {
  const { keys } = ctx.KVList(slotKey(''), '', SLOTS_MAX);
  const users: Array<string | null> = [];
  // The host gives 100 values at a time.
  for (let k = 0; k < keys.length; k += 100) users.push(...ctx.KVGetMany(keys.slice(k, k + 100)));
  return keys.map((key, k) => ({ time: key.slice(slotKey('').length), user: partOf(users[k] ?? FREE) }));
}

/**
 * A booking is written twice: the claim of the user says which slot, and the slot says which user. Both end with the same mark,
 * which no other booking has.
 */
const marked = (what: string | bigint, mark: string): string => `${what} ${mark}`;
/** The slot of a claim, or the user of a slot; null for none. */
const partOf = (text: string | null): string | null =>
  text === null || text === FREE ? null : (text.split(' ')[0] ?? null);
/** The mark of a booking. */
const markOf = (text: string): string => text.split(' ')[1] ?? '';

function slots(ctx: Context): void {
  const user = userOf(ctx);
  if (user === null) return;
  const free = allSlots(ctx).flatMap(s => (s.user === null ? [s.time] : []));
  ctx.JSON(200, { free, yours: partOf(ctx.KVGet(userKey(user))) });
}

function change(ctx: Context): void {
  const user = userOf(ctx);
  if (user === null) return;
  const { time = '' } = ctx.HTTP.Params;
  if (!isTime(time) || keptSeconds(time) <= 0) return ctx.JSON(404, { error: `there is no slot at ${time}` });
  if (ctx.HTTP.Method === 'DELETE') giveUp(ctx, user, time);
  else book(ctx, user, time);
}

/** Claims for a user who has no claim, or gave one up a moment ago. */
function claim(ctx: Context, user: bigint, text: string, seconds: number): KVUpdate {
  for (;;) {
    const absent = ctx.KVSetIfAbsent(userKey(user), text, seconds);
    if (absent.written || absent.present !== FREE) return absent;
    const free = ctx.KVCompareAndSet(userKey(user), FREE, text, seconds);
    // What stood for it may have gone in between: then it is absent.
    if (free.written || free.present !== null) return free;
  }
}

/** Takes back this very claim: another request of the user may have made one since. */
const unclaim = (ctx: Context, user: bigint, text: string): boolean =>
  ctx.KVCompareAndSet(userKey(user), text, FREE, 1).written;

/**
 * The claim of the user comes first: two requests of one user at the same time take one slot. It is looked at again once the
 * slot is theirs, as a request to give it up may have come in between.
 */
function book(ctx: Context, user: bigint, time: string): void {
  const seconds = keptSeconds(time);
  const mark = crypto.randomUUID();
  const own = marked(time, mark);
  const mine = claim(ctx, user, own, seconds);
  if (!mine.written) return ctx.JSON(409, { error: `you have booked ${partOf(mine.present)}; give it up first` });
  const taken = ctx.KVCompareAndSet(slotKey(time), FREE, marked(user, mark), seconds);
  if (!taken.written) {
    unclaim(ctx, user, own);
    if (taken.present === null) return ctx.JSON(404, { error: `there is no slot at ${time}` });
    return ctx.JSON(409, { error: `the slot at ${time} is taken` });
  }
  if (ctx.KVCompareAndSet(userKey(user), own, own, seconds).written) return ctx.JSON(201, { yours: time });
  ctx.KVCompareAndSet(slotKey(time), marked(user, mark), FREE, seconds);
  ctx.JSON(409, { error: `you gave up ${time} meanwhile` });
}

/** The claim goes first: a request that is about to book looks at it last, and then frees the slot itself. */
function giveUp(ctx: Context, user: bigint, time: string): void {
  const mine = ctx.KVGet(userKey(user));
  const isUnclaimed = mine !== null && partOf(mine) === time && unclaim(ctx, user, mine);
  const slot = ctx.KVGet(slotKey(time));
  const isFreed = slot !== null && partOf(slot) === String(user) && freeUnclaimed(ctx, user, time, slot);
  if (!isFreed && !isUnclaimed) return ctx.JSON(404, { error: `you have no slot at ${time}` });
  ctx.JSON(200, { yours: null });
}

/** Frees a slot whose claim is gone, also when an execution has ended between the two. */
function freeUnclaimed(ctx: Context, user: bigint, time: string, slot: string): boolean {
  const claimed = ctx.KVGet(userKey(user));
  if (claimed !== null && partOf(claimed) === time && markOf(claimed) === markOf(slot)) return false;
  return ctx.KVCompareAndSet(slotKey(time), slot, FREE, keptSeconds(time)).written;
}

/** The times in the body; null when there is anything else. */
function sentTimes(ctx: Context): string[] | null {
  try {
    const { slots: times } = ctx.HTTP.JSON<{ slots?: unknown }>();
    return Array.isArray(times) && times.length > 0 && times.every(isTime) ? times : null;
  } catch {
    return null;
  }
}

function plan(ctx: Context): void {
  if (ctx.HTTP.Method === 'PUT') {
    const times = sentTimes(ctx);
    if (times === null) return ctx.JSON(400, { error: 'send {"slots": ["2026-12-01T10:00", ...]}' });
    const past = times.find(time => keptSeconds(time) <= 0);
    if (past !== undefined) return ctx.JSON(422, { error: `${past} is over` });
    const all = new Set([...allSlots(ctx).map(s => s.time), ...times]);
    if (all.size > SLOTS_MAX) return ctx.JSON(422, { error: `there can be ${SLOTS_MAX} slots` });
    // A slot that is booked stays booked.
    for (const time of times) ctx.KVSetIfAbsent(slotKey(time), FREE, keptSeconds(time));
  }
  ctx.JSON(200, {
    slots: allSlots(ctx).map(({ time, user }) => ({ time, user: user === null ? null : Number(user) })),
  });
}

/** A calendar file (RFC 5545) with one event of half an hour. */
function calendarOf(time: string): string {
  const stamp = (at: Date): string => at.toISOString().replace(/[-:]|\.\d+Z/g, '');
  const begin = new Date(`${time}:00Z`);
  const end = new Date(begin.getTime() + 30 * 60_000);
  return [
    'BEGIN:VCALENDAR',
    'VERSION:2.0',
    'PRODID:-//office-hours//EN',
    'BEGIN:VEVENT',
    `UID:${time}@office-hours`,
    `DTSTAMP:${stamp(begin)}Z`,
    // Without a zone: the time of the place.
    `DTSTART:${stamp(begin)}`,
    `DTEND:${stamp(end)}`,
    'SUMMARY:Office hours',
    'END:VEVENT',
    'END:VCALENDAR',
    '',
  ].join('\r\n');
}

const CALENDAR_MS = 24 * 3_600_000;

function slot(ctx: Context): void {
  const { UserID } = ctx.Message;
  if (UserID === null) return ctx.Reply(NewMessage('Link this chat to your account first, then I know who you are.'));
  const time = partOf(ctx.KVGet(userKey(UserID)));
  if (time === null) return ctx.Reply(NewMessage('You have no slot.'));
  const file = ctx.FileStoreWithTTL('office-hours.ics', 'text/calendar', 'document', calendarOf(time), CALENDAR_MS);
  ctx.Reply(NewMessage(`Your slot: ${time.replace('T', ' ')}`).File(file));
}
