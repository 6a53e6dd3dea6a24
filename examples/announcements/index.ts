import {
  type Context,
  definePlugin,
  HostError,
  KV,
  NewMessage,
  NotifyReq,
  Students,
  TriggerHTTP,
  Users,
} from '@plugin-host/sdk';

/** Announcements to study groups in their messengers. The same one is not sent twice by a second click. */
definePlugin({
  ID: 'announcements',
  Name: 'Announcements',
  Version: '1.0.0',
  Requirements: [
    NotifyReq('Writes to the students of study groups').Build(),
    KV('Remembers what was announced, and to whom').Build(),
  ],
  Triggers: [
    {
      Name: 'announcements',
      Type: TriggerHTTP,
      Path: '/announcements',
      Methods: ['GET', 'POST'],
      Description: 'Sends an announcement to study groups, or lists the last ones',
      Access: Users('Deans and secretaries write to groups').Policy('has_any_role("dean", "secretary")'),
      Handler: ctx => (ctx.HTTP.Method === 'POST' ? announce(ctx) : list(ctx)),
    },
  ],
});

const TEXT_CHARS = 3000;
const GROUPS_MAX = 50;
const GROUP_CHARS = 200;
/** The same announcement to the same groups is a second click within this time. */
const REPEAT_SECONDS = 600;
const KEPT_SECONDS = 180 * 86_400;
const LISTED = 50;

type Announcement = { groups: string[]; text: string };
type Sent = Announcement & { at: string; by: number; queued: number; unreachable: number };

/** The announcement in the body; null when there is anything else. */
function sent(ctx: Context): Announcement | null {
  let given: Partial<Record<keyof Announcement, unknown>>;
  try {
    given = Object(ctx.HTTP.JSON<unknown>());
  } catch {
    return null;
  }
  const { groups, text } = given;
  const isRight =
    typeof text === 'string' &&
    text.trim() !== '' &&
    text.length <= TEXT_CHARS &&
    Array.isArray(groups) &&
    groups.length > 0 &&
    groups.length <= GROUPS_MAX &&
    groups.every(g => typeof g === 'string' && g !== '' && g.length <= GROUP_CHARS);
  return isRight ? { groups: [...new Set<string>(groups)].sort(), text } : null;
}

function announce(ctx: Context): void {
  const { Auth } = ctx.HTTP;
  if (Auth?.Kind !== 'user') return ctx.JSON(401, { error: 'log in first' });
  const order = sent(ctx);
  if (order === null)
    return ctx.JSON(400, {
      error: `send {"groups": ["g-1"], "text": ...}: at most ${GROUPS_MAX} groups and ${TEXT_CHARS} characters`,
    });
  const words = JSON.stringify(order);
  const repeat = `repeat:${digestOf(words)}`;
  if (!ctx.KVSetIfAbsent(repeat, '', REPEAT_SECONDS).written)
    return ctx.JSON(409, { error: 'this was just sent to these groups' });
  let counts: { queued: number; unreachable: number };
  try {
    counts = ctx.NotifyStudents(Students().Groups(...order.groups), NewMessage(order.text));
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    // Nothing was sent: the next try is no repetition.
    ctx.KVDelete(repeat);
    return ctx.JSON(error.code === 'invalid_argument' ? 422 : 503, { error: error.message });
  }
  const record: Sent = { ...order, at: new Date().toISOString(), by: Number(Auth.UserID), ...counts };
  // Newest first: keys are in the order of their text.
  const place = String(9_999_999_999_999 - Date.now()).padStart(13, '0');
  ctx.KVSet(`sent:${place}:${ctx.RequestID}`, JSON.stringify(record), KEPT_SECONDS);
  ctx.JSON(202, counts);
}

/** Tells texts apart (FNV-1a over their UTF-16 units, in 64 bits); it keeps no secret. */
function digestOf(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (let k = 0; k < text.length; k++) hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(k))) * 0x100000001b3n);
  return hash.toString(16);
}

function list(ctx: Context): void {
  const { keys } = ctx.KVList('sent:', '', LISTED);
  const announcements = ctx.KVGetMany(keys).flatMap(value => (value === null ? [] : [JSON.parse(value)]));
  ctx.JSON(200, { announcements });
}
