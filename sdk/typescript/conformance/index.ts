import {
  ConfigFields,
  type Context,
  Database,
  definePlugin,
  EventsReq,
  File,
  type FileRef,
  type FileType,
  HostError,
  HTTP,
  KV,
  NewMessage,
  NotifyReq,
  PluginDep,
  StringField,
  Students,
  TriggerHTTP,
  TriggerMessenger,
} from '@plugin-host/sdk';

/** Does what a test asks for, one function of the kit at a time: the same plugin is written in every kit. */

// biome-ignore lint/suspicious/noExplicitAny: each case knows what it is given.
type Given = any[];
type Case = (ctx: Context, ...given: Given) => unknown;

const bytesOf = (base64: string): Uint8Array => Uint8Array.fromBase64(base64);
const wire = (f: FileRef): object => ({
  id: f.ID,
  name: f.Name,
  mime_type: f.MIMEType,
  size: f.Size,
  file_type: f.FileType,
});

const CASES: Record<string, Case> = {
  request: ({ HTTP: r }) => ({
    method: r.Method,
    path: r.Path,
    query: r.Query,
    query_all: r.QueryAll,
    raw_query: r.RawQuery,
    header: r.Headers['x-test'] ?? null,
    param: r.Params.case,
    address: r.RemoteAddr,
    auth: r.Auth === null ? null : { kind: r.Auth.Kind, user_id: r.Auth.UserID, service_key_id: r.Auth.ServiceKeyID },
  }),
  body_bytes: ctx => ctx.HTTP.BodyBytes.length,
  config: (ctx, name) => ctx.Config(name),
  host_info: ctx => ctx.HostInfo().abi,
  log(ctx, text) {
    ctx.Log(text);
    ctx.LogError(text);
  },
  kv_get: (ctx, key) => ctx.KVGet(key),
  kv_get_bytes: (ctx, key) => ctx.KVGetBytes(key)?.toBase64() ?? null,
  kv_get_many: (ctx, keys) => ctx.KVGetMany(keys),
  kv_get_many_bytes: (ctx, keys) => ctx.KVGetManyBytes(keys).map(b => b?.toBase64() ?? null),
  kv_set: (ctx, key, value, ttl) => ctx.KVSet(key, value, ttl),
  kv_set_bytes: (ctx, key, base64) => ctx.KVSet(key, bytesOf(base64)),
  kv_set_if_absent: (ctx, key, value) => ctx.KVSetIfAbsent(key, value),
  kv_compare_and_set: (ctx, key, expected, value) => ctx.KVCompareAndSet(key, expected, value),
  kv_increment: (ctx, key, delta) => ctx.KVIncrement(key, BigInt(delta)),
  kv_delete: (ctx, key) => ctx.KVDelete(key),
  kv_list: (ctx, prefix, after, limit) => ctx.KVList(prefix, after, limit),
  sql_query: (ctx, statement, values, pageRows) => ctx.Database().Query(statement, values, pageRows).All(),
  sql_exec: (ctx, statement, values) => ctx.Database().Exec(statement, values),
  sql_integer: ctx => ctx.Database().QueryRow('SELECT $1::int8 AS n', [9007199254740993n])?.n,
  sql_bytes: ctx =>
    ctx
      .Database()
      .QueryRow('SELECT $1::bytea AS b', [Uint8Array.of(0, 255)])
      ?.b.toBase64(),
  sql_transaction(ctx, commit, statement) {
    const transaction = ctx.Database().Begin();
    const count = transaction.Exec(statement);
    if (commit) transaction.Commit();
    else transaction.Rollback();
    return count;
  },
  sql_other: (ctx, name) => ctx.Database(name).Exec('SELECT 1'),
  http_request(ctx, method, url, headers, body) {
    const answer = ctx.HTTPRequest({ Method: method, URL: url, Headers: headers, Body: body });
    return { status: answer.Status, header: answer.Header('X-Answer'), body: answer.Body };
  },
  http_get: (ctx, url) => ctx.HTTPGet(url).Body,
  http_post: (ctx, url, type, body) => ctx.HTTPPost(url, type, body).Body,
  notify_user: (ctx, id, text) => ctx.NotifyUser(BigInt(id), NewMessage(text)),
  notify_chat: (ctx, id, text) => ctx.NotifyChat(id, NewMessage(text)),
  notify_students: (ctx, group, text) =>
    ctx.NotifyStudents(Students().Groups(...(group === null ? [] : [group])), NewMessage(text)),
  publish: (ctx, name, payload) => ctx.PublishEvent(name, payload),
  call: (ctx, name, value) => ctx.CallPlugin('target', name, value),
  call_raw: (ctx, name, base64) => ctx.CallPluginRaw('target', name, bytesOf(base64)).toBase64(),
  file_store: (ctx, name, type, kind: FileType, base64) => wire(ctx.FileStore(name, type, kind, bytesOf(base64))),
  file_store_ttl: (ctx, name, ttl) => wire(ctx.FileStoreWithTTL(name, 'text/plain', 'document', 'short-lived', ttl)),
  file_meta: (ctx, id) => wire(ctx.FileMeta(id)),
  file_read(ctx, id, offset, max) {
    const { bytes, eof } = ctx.FileRead(id, offset, max);
    return { length: bytes.length, first: bytes[0] ?? null, eof };
  },
  file_read_all: (ctx, id) => sum(ctx.FileReadAll(id)),
  file_url: (ctx, id) => ctx.FileURL(id) !== '',
  large: (_ctx, length) => 'x'.repeat(length),
  random: () => [Math.random(), crypto.randomUUID()],
  clock: () => Date.now(),
};

/** Length and a checksum of bytes. */
const sum = (bytes: Uint8Array): object => ({
  length: bytes.length,
  sum: bytes.reduce((a, b, k) => (a + b * ((k % 251) + 1)) % 1_000_003, 0),
});

function run(ctx: Context): void {
  const name = ctx.HTTP.Params.case ?? '';
  const given: Given = name === 'body_bytes' ? [] : ctx.HTTP.Body === '' ? [] : ctx.HTTP.JSON<Given>();
  if (name === 'throw') throw new Error(given[0]);
  if (name === 'give_back') return void ctx.FileMeta(given[0]);
  if (name === 'loop') for (;;);
  if (name === 'respond') return ctx.SetHTTPResponse(given[0], given[1], given[2]);
  if (name === 'respond_bytes') return ctx.SetHTTPResponse(200, {}, bytesOf(given[0]));
  if (name === 'silent') return;
  const wanted = CASES[name];
  if (wanted === undefined) return ctx.JSON(404, { left_out: name });
  try {
    ctx.JSON(200, { result: wanted(ctx, ...given) ?? null });
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    ctx.JSON(200, { code: error.code, text: error.message });
  }
}

function command(ctx: Context): void {
  const { Args, ChatID, Text, UserID } = ctx.Message;
  const read = (id: string): string => new TextDecoder().decode(ctx.FileReadAll(id));
  const files = ctx.HasFiles() ? ctx.Files().map(f => `${f.FileType}: ${read(f.ID)}`) : [];
  ctx.Reply(NewMessage(JSON.stringify({ text: Text, args: Args, chat: ChatID, user: UserID, files })));
  const [name] = Args;
  if (name !== undefined)
    ctx.Reply(NewMessage('').File(ctx.FileStore(name, 'text/plain', 'document', 'in it'), 'Here'));
}

definePlugin({
  ID: 'conformance',
  Name: 'Conformance',
  Version: '1.0.0',
  Requirements: [
    KV('Cases')
      .WithConfig(ConfigFields(StringField('title', 'A title').Required(), StringField('none', 'Empty')))
      .Build(),
    Database('Cases').Build(),
    HTTP('Cases').Build(),
    NotifyReq('Cases').Build(),
    EventsReq('Cases').Build(),
    PluginDep('target', 'Cases').Build(),
    File('Cases').Build(),
  ],
  Triggers: [
    { Name: 'run', Type: TriggerHTTP, Path: '/run/:case', Methods: ['GET', 'POST'], Handler: run },
    { Name: 'say', Type: TriggerMessenger, Description: 'Says what came', Handler: command },
  ],
  Functions: {
    double: ctx => ctx.Output({ doubled: Number(ctx.Call.Value) * 2, from: ctx.Call.From }),
    reverse: ctx => ctx.OutputBytes(ctx.Call.Bytes.reverse()),
    refuse() {
      throw new Error('refused by its author');
    },
  },
});
