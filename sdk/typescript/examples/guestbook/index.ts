import { ConfigFields, type Context, definePlugin, KV, Public, StringField, TriggerHTTP } from '@plugin-host/sdk';

/** Entries in the key-value store, listed page by page; a title and a secret key from the configuration. */
definePlugin({
  ID: 'guestbook',
  Name: 'Guestbook',
  Version: '1.0.0',
  Requirements: [
    KV('Keeps the entries of the guestbook')
      .WithConfig(
        ConfigFields(
          StringField('title', 'Title shown above the entries'),
          StringField('moderator_key', 'Key that allows to remove an entry').Required().Sensitive(),
        ),
      )
      .Build(),
  ],
  Triggers: [
    {
      Name: 'entries',
      Type: TriggerHTTP,
      Path: '/entries',
      Methods: ['GET', 'POST'],
      Description: 'Lists the entries or adds one',
      Access: Public('Visitors read the guestbook and sign it without a login'),
      Handler: ctx => (ctx.HTTP.Method === 'POST' ? add(ctx) : list(ctx)),
    },
    {
      Name: 'entry',
      Type: TriggerHTTP,
      Path: '/entries/:id',
      Methods: ['GET', 'DELETE'],
      Description: 'Shows or removes one entry',
      Access: Public("Visitors read an entry without a login; removing one needs the moderator's key"),
      Handler: ctx => (ctx.HTTP.Method === 'DELETE' ? remove(ctx) : show(ctx)),
    },
  ],
});

const PREFIX = 'entry:';
const PAGE = 50;

type Entry = { id: string; name: string; text: string };

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

/** What a visitor has sent; null when it is no entry. */
function sentEntry(ctx: Context): Omit<Entry, 'id'> | null {
  try {
    const { name, text } = ctx.HTTP.JSON<Partial<Entry>>();
    return isText(name) && isText(text) ? { name, text } : null;
  } catch {
    return null;
  }
}

function list(ctx: Context): void {
  const { after } = ctx.HTTP.Query;
  const { keys, next } = ctx.KVList(PREFIX, after ? PREFIX + after : '', PAGE);
  // An entry may be removed between the two calls.
  const found = keys.map(key => ctx.KVGet(key)).filter(value => value !== null);
  ctx.JSON(200, {
    title: ctx.Config('title') ?? 'Guestbook',
    entries: found.map(value => JSON.parse(value)),
    next: next === null ? null : next.slice(PREFIX.length),
  });
}

function add(ctx: Context): void {
  const sent = sentEntry(ctx);
  if (sent === null) return ctx.JSON(400, { error: 'send {"name": ..., "text": ...}' });
  const entry: Entry = { id: ctx.RequestID, ...sent };
  ctx.KVSet(PREFIX + entry.id, JSON.stringify(entry));
  ctx.Log(`entry ${entry.id} by ${entry.name}`);
  ctx.JSON(201, entry);
}

function show(ctx: Context): void {
  const value = ctx.KVGet(PREFIX + ctx.HTTP.Params.id);
  if (value === null) return ctx.JSON(404, { error: 'there is no such entry' });
  ctx.SetHTTPResponse(200, { 'Content-Type': 'application/json' }, value);
}

function remove(ctx: Context): void {
  if (ctx.HTTP.Headers['x-moderator-key'] !== ctx.Config('moderator_key'))
    return ctx.JSON(403, { error: 'the moderator key is needed' });
  if (!ctx.KVDelete(PREFIX + ctx.HTTP.Params.id)) return ctx.JSON(404, { error: 'there is no such entry' });
  ctx.SetHTTPResponse(204, {});
}
