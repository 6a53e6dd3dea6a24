import {
  ConfigFields,
  type Context,
  definePlugin,
  File,
  type FileRef,
  HostError,
  KV,
  StringField,
  TriggerHTTP,
  Users,
} from '@plugin-host/sdk';

/** Students hand in files on a page in the browser, teachers fetch them. A later file replaces an earlier one. */
definePlugin({
  ID: 'hand-in',
  Name: 'Hand in',
  Version: '1.0.0',
  Requirements: [
    File('Takes over what students hand in, and gives it to teachers').Build(),
    KV('Remembers who has handed in what')
      .WithConfig(ConfigFields(StringField('tasks', 'Tasks that are open, like algebra-3, essay').Required()))
      .Build(),
  ],
  Triggers: [
    {
      Name: 'mine',
      Type: TriggerHTTP,
      Path: '/mine',
      Methods: ['GET'],
      Description: 'Lists what the caller has handed in',
      Access: Users('Students see what they have handed in'),
      Handler: mine,
    },
    {
      Name: 'hand_in',
      Type: TriggerHTTP,
      Path: '/tasks/:task/files',
      Methods: ['POST'],
      Description: 'Hands in an uploaded file for a task',
      Access: Users('Students hand in files'),
      Handler: handIn,
    },
    {
      Name: 'task',
      Type: TriggerHTTP,
      Path: '/tasks/:task',
      Methods: ['GET'],
      Description: 'Lists what was handed in for a task, with addresses to fetch it from',
      Access: Users('Teachers fetch what was handed in').Policy('has_role("teacher")'),
      Handler: task,
    },
  ],
});

/** What one execution reads and stores whole. */
const FILE_BYTES_MAX = 8 * 1024 * 1024;
/** Copies are deleted after a year, also those that a later file has replaced. */
const KEPT_MS = 366 * 86_400_000;
/** How often a student may hand in one task: each copy takes room for a year. */
const TIMES_MAX = 20;
const TASK = /^[\w-]{1,64}$/;

type HandedIn = { task: string; user: string; file: string; name: string; size: number; at: string };

const taskKey = (task: string, user: bigint | ''): string => `task:${task}:${user}`;
const timesKey = (task: string, user: bigint): string => `times:${task}:${user}`;
const mineKey = (user: bigint, task: string): string => `user:${user}:${task}`;

const openTasks = (ctx: Context): string[] =>
  (ctx.Config('tasks') ?? '')
    .split(',')
    .map(task => task.trim())
    .filter(task => TASK.test(task));

function userOf(ctx: Context): bigint | null {
  const { Auth } = ctx.HTTP;
  if (Auth?.Kind === 'user') return Auth.UserID;
  ctx.JSON(401, { error: 'log in first' });
  return null;
}

/** All keys with a prefix, a hundred at a time: as many as the host gives the values of. */
function* pagesOf(ctx: Context, prefix: string): Generator<string[]> {
  for (let after = ''; ; ) {
    const { keys, next } = ctx.KVList(prefix, after, 100);
    yield keys;
    if (next === null) return;
    after = next;
  }
}

const handedInOf = (ctx: Context, keys: readonly string[]): HandedIn[] =>
  ctx.KVGetMany(keys).flatMap((value): HandedIn[] => (value === null ? [] : [JSON.parse(value)]));

/** Null for a file that an administrator has deleted, or whose time is over. */
function linkOf(ctx: Context, file: string): string | null {
  try {
    return ctx.FileURL(file);
  } catch (error) {
    if (error instanceof HostError && error.code === 'not_found') return null;
    throw error;
  }
}

function mine(ctx: Context): void {
  const user = userOf(ctx);
  if (user === null) return;
  const handedIn: object[] = [];
  for (const keys of pagesOf(ctx, mineKey(user, ''))) {
    const tasks = keys.map(key => key.slice(mineKey(user, '').length));
    for (const { at, name, size, task } of handedInOf(
      ctx,
      tasks.map(t => taskKey(t, user)),
    ))
      handedIn.push({ task, name, size, at });
  }
  ctx.JSON(200, { tasks: openTasks(ctx), handed_in: handedIn });
}

/** The file that the body names; null when the caller may not read such a file. */
function sentFile(ctx: Context): FileRef | null {
  try {
    const { file_id } = ctx.HTTP.JSON<{ file_id?: unknown }>();
    return typeof file_id === 'string' ? ctx.FileMeta(file_id) : null;
  } catch (error) {
    if (error instanceof SyntaxError || (error instanceof HostError && error.code === 'not_found')) return null;
    throw error;
  }
}

/** What a user has uploaded, the plugin may read for this user alone: teachers get a copy, which belongs to the plugin. */
function handIn(ctx: Context): void {
  const user = userOf(ctx);
  if (user === null) return;
  const { task = '' } = ctx.HTTP.Params;
  if (!openTasks(ctx).includes(task)) return ctx.JSON(404, { error: `there is no task ${task} to hand in` });
  const file = sentFile(ctx);
  if (file === null) return ctx.JSON(400, { error: 'send {"file_id": ...} of a completed upload' });
  if (file.Size > FILE_BYTES_MAX) return ctx.JSON(413, { error: 'a file may have 8 MB' });
  const times = ctx.KVIncrement(timesKey(task, user), 1, KEPT_MS / 1000);
  if (times > TIMES_MAX) {
    ctx.KVIncrement(timesKey(task, user), -1, KEPT_MS / 1000);
    return ctx.JSON(409, { error: `this task was handed in ${TIMES_MAX} times` });
  }
  let copy: FileRef;
  try {
    copy = ctx.FileStoreWithTTL(file.Name, file.MIMEType, file.FileType, ctx.FileReadAll(file.ID), KEPT_MS);
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    ctx.KVIncrement(timesKey(task, user), -1, KEPT_MS / 1000);
    ctx.LogError(error.message);
    return ctx.JSON(503, { error: `the file cannot be taken now: ${error.message}` });
  }
  const at = new Date().toISOString();
  const handedIn: HandedIn = { task, user: String(user), file: copy.ID, name: copy.Name, size: copy.Size, at };
  ctx.KVSet(taskKey(task, user), JSON.stringify(handedIn));
  ctx.KVSet(mineKey(user, task), '');
  ctx.JSON(201, { task, name: copy.Name, size: copy.Size });
}

function task(ctx: Context): void {
  const { task = '' } = ctx.HTTP.Params;
  const files: object[] = [];
  for (const keys of pagesOf(ctx, taskKey(task, '')))
    for (const { at, file, name, size, user } of handedInOf(ctx, keys))
      files.push({ user: Number(user), name, size, at, url: linkOf(ctx, file) });
  ctx.JSON(200, { task, files });
}
