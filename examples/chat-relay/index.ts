import {
  ConfigFields,
  type Context,
  definePlugin,
  EventsReq,
  HostError,
  HTTP,
  KV,
  ServiceKeys,
  StringField,
  TriggerHTTP,
} from 'plugin-host';

/**
 * Passes events on to the webhook of a team chat (Mattermost, Slack, Rocket.Chat), and publishes them here. While the chat is away
 * they wait, and go out in their order with the next one.
 */
definePlugin({
  ID: 'chat-relay',
  Name: 'Chat relay',
  Version: '1.0.0',
  Requirements: [
    HTTP('Posts to the webhook of the team chat')
      .WithConfig(
        ConfigFields(StringField('webhook', 'Address of the incoming webhook, with its secret').Required().Sensitive()),
      )
      .Build(),
    EventsReq('Publishes what it passes on, for other subscribers').Build(),
    KV('Keeps what the chat has not taken yet').Build(),
  ],
  Functions: { announce },
  Triggers: [
    {
      Name: 'events',
      Type: TriggerHTTP,
      Path: '/events/:type',
      Methods: ['POST'],
      Description: 'Takes an event and passes it on',
      Access: ServiceKeys('Programs of the university send events'),
      Handler: receive,
    },
  ],
});

const WAITING = 'waiting:';
const NEXT = 'next';
const TEXT_CHARS = 4000;
/** What one execution sends of what waits. */
const SENT_AT_ONCE = 20;

type Event = { type: string; text: string };

function receive(ctx: Context): void {
  const { type = '' } = ctx.HTTP.Params;
  let text: unknown;
  try {
    text = ctx.HTTP.JSON<{ text?: unknown }>().text;
  } catch {
    text = null;
  }
  if (typeof text !== 'string' || text === '' || text.length > TEXT_CHARS)
    return ctx.JSON(400, { error: `send {"text": ...} of at most ${TEXT_CHARS} characters` });
  const waiting = relay(ctx, { type, text });
  ctx.JSON(waiting === 0 ? 200 : 202, { waiting });
}

/** For other plugins: {"type": ..., "text": ...} -> {"waiting": 0}. */
function announce(ctx: Context): void {
  const { text, type }: { type?: unknown; text?: unknown } = Object(ctx.Call.Value);
  if (typeof type !== 'string' || typeof text !== 'string') throw new Error('call it with {"type": ..., "text": ...}');
  ctx.Output({ waiting: relay(ctx, { type, text: text.slice(0, TEXT_CHARS) }) });
}

/** Publishes and keeps the event, then sends what waits. @returns how many wait for the chat */
function relay(ctx: Context, event: Event): number {
  ctx.PublishEvent(event.type, { text: event.text });
  // Keys are in the order of their text.
  const place = String(ctx.KVIncrement(NEXT)).padStart(15, '0');
  ctx.KVSet(WAITING + place, JSON.stringify(event));
  const { keys } = ctx.KVList(WAITING, '', SENT_AT_ONCE);
  for (const key of keys) {
    const value = ctx.KVGet(key);
    // Another execution has sent it meanwhile.
    if (value === null) continue;
    if (!post(ctx, JSON.parse(value))) return ctx.KVList(WAITING, '', 1000).keys.length;
    ctx.KVDelete(key);
  }
  return 0;
}

/** Whether the chat has taken it. What it refuses for good is dropped: it would hold up all others. */
function post(ctx: Context, { text, type }: Event): boolean {
  try {
    const body = JSON.stringify({ text: `**${type}** ${text}` });
    const { Status } = ctx.HTTPPost(ctx.Config('webhook') ?? '', 'application/json', body);
    if (Status >= 400 && Status < 500 && Status !== 429) ctx.LogError(`the chat refuses it with ${Status}: ${type}`);
    return Status < 500 && Status !== 429;
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    ctx.LogError(`the chat does not answer: ${error.message}`);
    return false;
  }
}
