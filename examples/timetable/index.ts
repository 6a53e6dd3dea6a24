import {
  ConfigFields,
  type Context,
  definePlugin,
  KV,
  NewMessage,
  ServiceKeys,
  StringField,
  TriggerHTTP,
  TriggerMessenger,
} from '@plugin-host/sdk';

/** A bot that knows the timetable: the registrar sends it, students ask for a day in their messenger. */
definePlugin({
  ID: 'timetable',
  Name: 'Timetable',
  Version: '1.0.0',
  Requirements: [
    KV('Keeps the timetables of groups, and which group a chat asks for')
      .WithConfig(ConfigFields(StringField('utc_offset', 'When a day begins, like +03:00; UTC without it')))
      .Build(),
  ],
  Triggers: [
    {
      Name: 'import',
      Type: TriggerHTTP,
      Path: '/groups/:group/:day',
      Methods: ['PUT'],
      Description: 'Takes over the lessons of a group on a day',
      Access: ServiceKeys('The registrar sends timetables'),
      Handler: takeOver,
    },
    {
      Name: 'group',
      Type: TriggerMessenger,
      Description: 'Says which group you are in: /group ИВТ-21',
      Handler: group,
    },
    { Name: 'today', Type: TriggerMessenger, Description: 'Lessons of today', Handler: ctx => show(ctx, 0) },
    { Name: 'tomorrow', Type: TriggerMessenger, Description: 'Lessons of tomorrow', Handler: ctx => show(ctx, 1) },
    { Name: 'day', Type: TriggerMessenger, Description: 'Lessons of a day: /day 2026-12-01', Handler: onDay },
  ],
});

type Lesson = { start: string; end: string; course: string; room: string };

const DAY_MS = 86_400_000;
/** A day is forgotten a week after it. */
const KEPT_MS = 8 * DAY_MS;
const LESSONS_MAX = 20;
const SECONDS_MAX = 10 * 366 * 86_400;

const dayKey = (group: string, day: string): string => `day:${group}:${day}`;
/** A chat is known by its messenger and id, which it has before it is linked to a user. */
const chatKey = (ctx: Context): string => `chat:${ctx.Message.Channel}:${ctx.Message.ChatID}`;

const isDay = (day: string): boolean => /^\d{4}-\d\d-\d\d$/.test(day) && !Number.isNaN(Date.parse(day));

function isLesson(value: unknown): value is Lesson {
  const { course, end, room, start }: Partial<Record<keyof Lesson, unknown>> = Object(value);
  const isTime = (time: unknown): boolean => typeof time === 'string' && /^([01]\d|2[0-3]):[0-5]\d$/.test(time);
  return isTime(start) && isTime(end) && typeof course === 'string' && typeof room === 'string';
}

function sentLessons(ctx: Context): Lesson[] | null {
  try {
    const list = ctx.HTTP.JSON<unknown>();
    return Array.isArray(list) && list.length <= LESSONS_MAX && list.every(isLesson) ? list : null;
  } catch {
    return null;
  }
}

function takeOver(ctx: Context): void {
  const { day = '', group = '' } = ctx.HTTP.Params;
  if (!isDay(day)) return ctx.JSON(400, { error: `${day} is no day like 2026-12-01` });
  const lessons = sentLessons(ctx);
  if (lessons === null)
    return ctx.JSON(400, { error: 'send [{"start": "09:00", "end": "10:30", "course": ..., "room": ...}]' });
  const seconds = Math.ceil((Date.parse(day) + KEPT_MS - Date.now()) / 1000);
  if (seconds <= 0) return ctx.JSON(422, { error: `${day} is over` });
  if (seconds > SECONDS_MAX) return ctx.JSON(422, { error: `${day} is more than ten years ahead` });
  const sorted = lessons.toSorted((a, b) => a.start.localeCompare(b.start));
  ctx.KVSet(dayKey(group, day), JSON.stringify(sorted), seconds);
  ctx.JSON(200, { group, day, lessons: sorted.length });
}

function group(ctx: Context): void {
  const name = ctx.Message.Args.join(' ').trim().slice(0, 100);
  if (name === '') return ctx.Reply(NewMessage('Say which group: /group ИВТ-21'));
  ctx.KVSet(chatKey(ctx), name);
  ctx.Reply(NewMessage(`From now on I show you the timetable of ${name}.`));
}

/** How far the time of the university is ahead of UTC. */
function offsetMs(ctx: Context): number {
  const text = ctx.Config('utc_offset') || '+00:00';
  const [, sign, hours, minutes] = /^([+-])(\d\d):(\d\d)$/.exec(text) ?? [];
  if (sign === undefined) throw new Error(`the configuration has utc_offset ${text}; write it like +03:00`);
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}

function show(ctx: Context, daysFromNow: number): void {
  tell(ctx, new Date(Date.now() + offsetMs(ctx) + daysFromNow * DAY_MS).toISOString().slice(0, 10));
}

function onDay(ctx: Context): void {
  const [day = ''] = ctx.Message.Args;
  if (isDay(day)) tell(ctx, day);
  else ctx.Reply(NewMessage('Say which day: /day 2026-12-01'));
}

function tell(ctx: Context, day: string): void {
  const name = ctx.KVGet(chatKey(ctx));
  if (name === null) return ctx.Reply(NewMessage('Say first which group you are in: /group ИВТ-21'));
  const found = ctx.KVGet(dayKey(name, day));
  if (found === null) return ctx.Reply(NewMessage(`${name}, ${day}: nothing is known.`));
  const lessons: Lesson[] = JSON.parse(found);
  if (lessons.length === 0) return ctx.Reply(NewMessage(`${name}, ${day}: no lessons.`));
  const lines = lessons.map(l => `${l.start}–${l.end}  ${l.course}, ${l.room}`);
  ctx.Reply(NewMessage([`${name}, ${day}`, ...lines].join('\n')));
}
