import { type Context, definePlugin, HostError, NewMessage, Students, TriggerHTTP } from 'plugin-host';

/** Calls what it does not require. */

const CALLS: Record<string, (ctx: Context) => unknown> = {
  KVGet: ctx => ctx.KVGet('a'),
  KVSet: ctx => ctx.KVSet('a', 'b'),
  KVIncrement: ctx => ctx.KVIncrement('a'),
  KVSetIfAbsent: ctx => ctx.KVSetIfAbsent('a', 'b'),
  KVGetMany: ctx => ctx.KVGetMany(['a']),
  KVList: ctx => ctx.KVList(),
  KVDelete: ctx => ctx.KVDelete('a'),
  Database: ctx => ctx.Database(),
  HTTPGet: ctx => ctx.HTTPGet('http://127.0.0.1/'),
  NotifyUser: ctx => ctx.NotifyUser(1, NewMessage('a')),
  NotifyChat: ctx => ctx.NotifyChat('1', NewMessage('a')),
  NotifyStudents: ctx => ctx.NotifyStudents(Students().All(), NewMessage('a')),
  PublishEvent: ctx => ctx.PublishEvent('a', {}),
  CallPlugin: ctx => ctx.CallPlugin('target', 'double', 1),
  FileMeta: ctx => ctx.FileMeta('a'),
  FileRead: ctx => ctx.FileRead('a', 0),
  FileURL: ctx => ctx.FileURL('a'),
  FileStore: ctx => ctx.FileStore('a', 'text/plain', 'document', 'a'),
};

function answer(call: (ctx: Context) => unknown, ctx: Context): string {
  try {
    call(ctx);
    return 'allowed';
  } catch (error) {
    return error instanceof HostError ? `${error.code}: ${error.message}` : `${error}`;
  }
}

definePlugin({
  ID: 'denied',
  Name: 'Denied',
  Version: '1.0.0',
  Triggers: [
    {
      Name: 'all',
      Type: TriggerHTTP,
      Path: '/all',
      Methods: ['GET'],
      Handler: ctx =>
        ctx.JSON(200, Object.fromEntries(Object.entries(CALLS).map(([name, c]) => [name, answer(c, ctx)]))),
    },
  ],
});
