import {
  ConfigFields,
  type Context,
  Database,
  definePlugin,
  EventsReq,
  File,
  HostError,
  HTTP,
  KV,
  NewMessage,
  NotifyReq,
  PluginDep,
  Public,
  ServiceKeys,
  StringField,
  Students,
  TriggerHTTP,
  TriggerMessenger,
  Users,
  UsersAndServiceKeys,
} from '@plugin-host/sdk';

/** One handler for each recipe of docs/authors.md. */
definePlugin({
  ID: 'recipes',
  Name: 'Recipes',
  Version: '1.0.0',
  Requirements: [
    KV('Remembers notes, seats and visits').Build(),
    Database('Reads and writes grades').Name('grades').Build(),
    HTTP('Asks the weather service')
      .WithConfig(
        ConfigFields(
          StringField('service', 'Address of the weather service').Required(),
          StringField('key', 'Key of the weather service').Required().Sensitive(),
        ),
      )
      .Build(),
    File('Reads what users upload, and stores reports').Build(),
    NotifyReq('Reminds users and writes to study groups').Build(),
    EventsReq('Says when a book was returned').Build(),
    PluginDep('weather', 'Asks for the temperature').Build(),
  ],
  Functions: { free },
  Triggers: [
    {
      Name: 'greet',
      Type: TriggerHTTP,
      Path: '/greet/:name',
      Methods: ['GET'],
      Access: Public('It shows what the caller sent'),
      Handler: greet,
    },
    { Name: 'order', Type: TriggerHTTP, Path: '/orders', Methods: ['POST'], Handler: order },
    { Name: 'table', Type: TriggerHTTP, Path: '/table', Methods: ['GET'], Handler: table },
    {
      Name: 'me',
      Type: TriggerHTTP,
      Path: '/me',
      Methods: ['GET'],
      Access: UsersAndServiceKeys('Each caller sees who it is'),
      Handler: me,
    },
    { Name: 'note', Type: TriggerHTTP, Path: '/notes/:name', Methods: ['GET', 'PUT', 'DELETE'], Handler: note },
    { Name: 'visit', Type: TriggerHTTP, Path: '/visits', Methods: ['POST'], Handler: visit },
    {
      Name: 'claim',
      Type: TriggerHTTP,
      Path: '/seats/:seat',
      Methods: ['POST'],
      Access: Users('Users take seats'),
      Handler: claim,
    },
    {
      Name: 'release',
      Type: TriggerHTTP,
      Path: '/seats/:seat/release',
      Methods: ['POST'],
      Access: Users('Users give back their seats'),
      Handler: release,
    },
    { Name: 'seats', Type: TriggerHTTP, Path: '/seats', Methods: ['GET'], Handler: seats },
    { Name: 'grades', Type: TriggerHTTP, Path: '/grades/:student', Methods: ['GET'], Handler: grades },
    {
      Name: 'enter',
      Type: TriggerHTTP,
      Path: '/grades',
      Methods: ['POST'],
      Access: ServiceKeys('The register enters grades'),
      Handler: enter,
    },
    { Name: 'weather', Type: TriggerHTTP, Path: '/weather/:place', Methods: ['GET'], Handler: weather },
    {
      Name: 'lines',
      Type: TriggerHTTP,
      Path: '/lines',
      Methods: ['POST'],
      Access: Users('Users have their files counted'),
      Handler: lines,
    },
    {
      Name: 'report',
      Type: TriggerHTTP,
      Path: '/reports',
      Methods: ['POST'],
      Access: Users('Users store reports'),
      Handler: report,
    },
    { Name: 'dishes', Type: TriggerMessenger, Description: 'The dishes of a day', Handler: dishes },
    {
      Name: 'remind',
      Type: TriggerHTTP,
      Path: '/reminders',
      Methods: ['POST'],
      Access: ServiceKeys('The library reminds its readers'),
      Handler: remind,
    },
    {
      Name: 'announce',
      Type: TriggerHTTP,
      Path: '/announcements',
      Methods: ['POST'],
      Access: Users('Deans write to groups').Policy('has_role("dean")'),
      Handler: announce,
    },
    { Name: 'returned', Type: TriggerHTTP, Path: '/returned/:book', Methods: ['POST'], Handler: returned },
    { Name: 'outside', Type: TriggerHTTP, Path: '/outside/:place', Methods: ['GET'], Handler: outside },
  ],
});

function greet(ctx: Context): void {
  const { Params, Query } = ctx.HTTP;
  ctx.JSON(200, { message: `${Query.word ?? 'Hello'}, ${Params.name}!` });
}

function order(ctx: Context): void {
  let dish: unknown;
  try {
    dish = ctx.HTTP.JSON<{ dish?: unknown } | null>()?.dish;
  } catch {}
  if (typeof dish !== 'string' || dish === '') return ctx.JSON(400, { error: 'send {"dish": ...}' });
  ctx.JSON(201, { dish });
}

function table(ctx: Context): void {
  const headers = { 'Content-Type': 'text/csv', 'Content-Disposition': 'attachment; filename="seats.csv"' };
  ctx.SetHTTPResponse(200, headers, 'seat,name\n1,Ada\n');
}

function me(ctx: Context): void {
  const { Auth } = ctx.HTTP;
  if (Auth === null) return ctx.JSON(401, { error: 'log in first' });
  ctx.JSON(200, { kind: Auth.Kind, id: Auth.UserID ?? Auth.ServiceKeyID ?? 0 });
}

function note(ctx: Context): void {
  const key = `note:${ctx.HTTP.Params.name}`;
  if (ctx.HTTP.Method === 'PUT') ctx.KVSet(key, ctx.HTTP.Body, 3600);
  const text = ctx.KVGet(key);
  if (text === null) return ctx.JSON(404, { error: 'there is no such note' });
  if (ctx.HTTP.Method === 'DELETE') ctx.KVDelete(key);
  ctx.JSON(200, { text });
}

function visit(ctx: Context): void {
  ctx.JSON(200, { visits: ctx.KVIncrement('visits') });
}

function claim(ctx: Context): void {
  const { Auth, Params } = ctx.HTTP;
  if (Auth?.Kind !== 'user') return ctx.JSON(401, { error: 'log in first' });
  const [key, user] = [`seat:${Params.seat}`, String(Auth.UserID)];
  let claimed = ctx.KVSetIfAbsent(key, user);
  if (!claimed.written && claimed.present === '') claimed = ctx.KVCompareAndSet(key, '', user);
  if (!claimed.written) return ctx.JSON(409, { error: 'the seat is taken' });
  ctx.JSON(201, { user });
}

function release(ctx: Context): void {
  const { Auth, Params } = ctx.HTTP;
  if (Auth?.Kind !== 'user') return ctx.JSON(401, { error: 'log in first' });
  const released = ctx.KVCompareAndSet(`seat:${Params.seat}`, String(Auth.UserID), '');
  if (!released.written) return ctx.JSON(409, { error: 'the seat is not yours' });
  ctx.SetHTTPResponse(204, {});
}

function seats(ctx: Context): void {
  const { keys, next } = ctx.KVList('seat:', ctx.HTTP.Query.after ?? '', 50);
  const users = ctx.KVGetMany(keys);
  ctx.JSON(200, { seats: keys.map((key, k) => ({ key, user: users[k] ?? '' })), next: next ?? '' });
}

function grades(ctx: Context): void {
  const { student = '' } = ctx.HTTP.Params;
  if (!/^\d{1,18}$/.test(student)) return ctx.JSON(404, { error: 'there is no such student' });
  const statement = 'SELECT course, grade FROM grades WHERE student = $1 ORDER BY course';
  ctx.JSON(200, {
    grades: ctx
      .Database('grades')
      .Query(statement, [BigInt(student)])
      .All(),
  });
}

function enter(ctx: Context): void {
  const { student, courses } = ctx.HTTP.JSON<{ student: number; courses: string[] }>();
  ctx.Database('grades').Transaction(tx => {
    tx.Exec('CREATE TABLE IF NOT EXISTS grades (student bigint, course text, grade int)');
    for (const course of courses) tx.Exec('INSERT INTO grades VALUES ($1, $2, 5)', [student, course]);
  });
  ctx.JSON(201, { entered: courses.length });
}

function weather(ctx: Context): void {
  const answer = ctx.HTTPRequest({
    URL: `${ctx.Config('service')}/current?place=${encodeURIComponent(ctx.HTTP.Params.place ?? '')}`,
    Headers: { authorization: `Bearer ${ctx.Config('key')}` },
    TimeoutMs: 2000,
  });
  if (answer.Status !== 200) return ctx.JSON(502, { error: `the weather service answered ${answer.Status}` });
  ctx.JSON(200, answer.JSON());
}

function lines(ctx: Context): void {
  const { file_id = '' } = ctx.HTTP.JSON<{ file_id?: string }>();
  let count = 0;
  for (let offset = 0, end = false; !end; ) {
    const { bytes, eof } = ctx.FileRead(file_id, offset);
    for (const byte of bytes) if (byte === 10) count++;
    offset += bytes.length;
    end = eof;
  }
  ctx.JSON(200, { name: ctx.FileMeta(file_id).Name, lines: count });
}

function report(ctx: Context): void {
  const file = ctx.FileStoreWithTTL('seats.txt', 'text/plain', 'document', ctx.HTTP.Body, 3_600_000);
  ctx.JSON(201, { id: file.ID, url: ctx.FileURL(file.ID) });
}

function dishes(ctx: Context): void {
  const day = ctx.Message.Args[0] ?? 'today';
  const file = ctx.FileStoreWithTTL('dishes.txt', 'text/plain', 'document', 'Soup\n', 3_600_000);
  for (const photo of ctx.Files()) ctx.Log(`${photo.Name} came along, ${photo.Size} bytes`);
  ctx.Reply(NewMessage(`The dishes of ${day}`).File(file, 'Dishes'));
}

function remind(ctx: Context): void {
  const { reader } = ctx.HTTP.JSON<{ reader: number }>();
  ctx.NotifyUser(reader, NewMessage('Your book is due'));
  ctx.SetHTTPResponse(202, {});
}

function announce(ctx: Context): void {
  const { group, text } = ctx.HTTP.JSON<{ group: string; text: string }>();
  const { queued, unreachable } = ctx.NotifyStudents(Students().Groups(group), NewMessage(text));
  ctx.JSON(202, { queued, unreachable });
}

function returned(ctx: Context): void {
  ctx.PublishEvent('book.returned', { book: ctx.HTTP.Params.book ?? '' });
  ctx.SetHTTPResponse(202, {});
}

function outside(ctx: Context): void {
  try {
    ctx.JSON(200, ctx.CallPlugin('weather', 'temperature', { place: ctx.HTTP.Params.place ?? '' }));
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    ctx.LogError(`weather: ${error.message}`);
    ctx.JSON(503, { error: error.code });
  }
}

function free(ctx: Context): void {
  const { seat }: { seat?: number } = Object(ctx.Call.Value);
  ctx.Output({ free: ctx.KVGet(`seat:${seat}`) === null });
}
