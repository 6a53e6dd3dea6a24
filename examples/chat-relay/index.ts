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
} from '@plugin-host/sdk';

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
/** What one execution sends of what waits in one round, and when it begins no further round: it has five seconds. */
const ROUNDS_MS = 1500;
const SENDING = 'sending';
/** An execution that ends in the middle holds up the others no longer than this. */
const SENDING_SECONDS = 10;
/** Statuses that speak of the text; others, like 404 for a webhook that is gone, speak of the chat. */
const REFUSED_TEXT = new Set([400, 413, 422]);

type Event = { type: string; text: string };

const isText = (text: unknown): text is string => typeof text === 'string' && text !== '' && text.length <= TEXT_CHARS;

function receive(ctx: Context): void {
  const { type = '' } = ctx.HTTP.Params;
  let text: unknown;
  try {
    text = ctx.HTTP.JSON<{ text?: unknown }>().text;
  } catch {
    text = null;
  }
  if (!isText(text)) return ctx.JSON(400, { error: `send {"text": ...} of at most ${TEXT_CHARS} characters` });
  try {
    const waiting = relay(ctx, { type, text });
    ctx.JSON(waiting === 0 ? 200 : 202, { waiting });
  } catch (error) {
    if (!(error instanceof HostError) || error.code !== 'invalid_argument') throw error;
    ctx.JSON(400, { error: error.message });
  }
}

/** For other plugins: {"type": ..., "text": ...} -> {"waiting": 0}. */
function announce(ctx: Context): void {
  const { text, type }: { type?: unknown; text?: unknown } = Object(ctx.Call.Value);
  if (typeof type !== 'string' || !isText(text))
    throw new Error(`call it with {"type": ..., "text": ...} of at most ${TEXT_CHARS} characters`);
  ctx.Output({ waiting: relay(ctx, { type, text }) });
}

/** Publishes and keeps the event, then sends what waits. @returns how many wait for the chat, 1000 at most */
function relay(ctx: Context, event: Event): number {
  ctx.PublishEvent(event.type, { text: event.text });
  // Keys are in the order of their text.
  const place = String(ctx.KVIncrement(NEXT)).padStart(15, '0');
  ctx.KVSet(WAITING + place, JSON.stringify(event));
  // One execution sends at a time. What came while it sent, and was left to it, it sends in the next round.
  const until = Date.now() + ROUNDS_MS;
  for (let isSent = true; isSent && Date.now() < until && ctx.KVSetIfAbsent(SENDING, '', SENDING_SECONDS).written; ) {
    isSent = sendWaiting(ctx);
    ctx.KVDelete(SENDING);
    if (ctx.KVList(WAITING, '', 1).keys.length === 0) break;
  }
  return ctx.KVList(WAITING, '', 1000).keys.length;
}

/** @returns whether the chat took everything */
function sendWaiting(ctx: Context): boolean {
  for (const key of ctx.KVList(WAITING, '', SENT_AT_ONCE).keys) {
    const value = ctx.KVGet(key);
    if (value === null) continue;
    if (!isOver(ctx, JSON.parse(value))) return false;
    ctx.KVDelete(key);
  }
  return true;
}

/** Whether the chat has taken it, or refuses this very text for good: that would hold up all others. */
function isOver(ctx: Context, { text, type }: Event): boolean {
  try {
    const body = JSON.stringify({ text: `${type}: ${text}` });
    const { Status } = ctx.HTTPPost(ctx.Config('webhook') ?? '', 'application/json', body);
    if (Status >= 200 && Status < 300) return true;
    ctx.LogError(`the chat answers ${Status}: ${type}`);
    return REFUSED_TEXT.has(Status);
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    ctx.LogError(`the chat does not answer: ${error.message}`);
    return false;
  }
}
