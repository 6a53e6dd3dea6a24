import { type Context, definePlugin, File, type FileRef, HostError, KV, TriggerHTTP } from '@plugin-host/sdk';
import { FNV_START, fnv } from './fnv.ts';

/** A box of files for each user, with a page in a browser: uploads, links, notes, and files read in parts. */
definePlugin({
  ID: 'filebox',
  Name: 'Filebox',
  Version: '1.0.0',
  Requirements: [
    File('Keeps the files users upload, and stores notes of its own').Build(),
    KV('Remembers whose box holds which file').Build(),
  ],
  Triggers: [
    {
      Name: 'files',
      Type: TriggerHTTP,
      Path: '/files',
      Methods: ['GET', 'POST'],
      Description: 'Lists the box, or puts uploaded files into it',
      Handler: ctx => inBox(ctx, ctx.HTTP.Method === 'POST' ? add : list),
    },
    {
      Name: 'file',
      Type: TriggerHTTP,
      Path: '/files/:id',
      Methods: ['GET', 'DELETE'],
      Description: 'Gives the content of a file, or takes it out of the box',
      Handler: ctx => inBox(ctx, ctx.HTTP.Method === 'DELETE' ? remove : content),
    },
    {
      Name: 'link',
      Type: TriggerHTTP,
      Path: '/files/:id/link',
      Methods: ['GET'],
      Description: 'Gives an address the file can be read at for some minutes',
      Handler: ctx => inBox(ctx, link),
    },
    {
      Name: 'checksum',
      Type: TriggerHTTP,
      Path: '/files/:id/checksum',
      Methods: ['GET'],
      Description: 'Reads a file of any size in chunks, a part of it with each call',
      Handler: ctx => inBox(ctx, checksum),
    },
    {
      Name: 'notes',
      Type: TriggerHTTP,
      Path: '/notes',
      Methods: ['POST'],
      Description: 'Stores a text as a file',
      Handler: ctx => inBox(ctx, addNote),
    },
  ],
});

/** What one execution reads at most: the engine interprets, and an execution has five seconds. */
const WINDOW = 8 * 1024 * 1024;

/** What stops a request, with its status. */
class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Lets users in alone, and runs a handler with what the keys of the user's box begin with. */
function inBox(ctx: Context, handle: (ctx: Context, box: string) => void): void {
  const { Auth } = ctx.HTTP;
  if (Auth?.Kind !== 'user') return ctx.JSON(401, { error: 'log in to have a box' });
  try {
    handle(ctx, `box:${Auth.UserID}:`);
  } catch (error) {
    if (!(error instanceof Refusal) && !(error instanceof HostError)) throw error;
    const status = error instanceof Refusal ? error.status : error.code === 'not_found' ? 404 : 502;
    ctx.JSON(status, { error: error.message });
  }
}

/**
 * The id in the path, of a file in the box. The host lets no user read what another one has uploaded, but notes are the
 * plugin's own files, and whose they are is known here alone.
 */
function heldFile(ctx: Context, box: string): string {
  const { id = '' } = ctx.HTTP.Params;
  if (ctx.KVGet(box + id) === null) throw new Refusal(404, 'not found');
  return id;
}

/** The JSON in the body; without members when there is none. */
function sent(ctx: Context): Record<string, unknown> {
  try {
    return Object(ctx.HTTP.JSON<unknown>());
  } catch {
    return {};
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const shown = ({ FileType, ID, MIMEType, Name, Size }: FileRef): object => ({
  id: ID,
  name: Name,
  mime_type: MIMEType,
  size: Size,
  file_type: FileType,
});

/** What the host knows of a file; null when it was deleted or its time has passed. */
function metaOf(ctx: Context, id: string): FileRef | null {
  try {
    return ctx.FileMeta(id);
  } catch (error) {
    if (error instanceof HostError && error.code === 'not_found') return null;
    throw error;
  }
}

function list(ctx: Context, box: string): void {
  const files = ctx.KVList(box, '', 200).keys.flatMap(key => {
    const file = metaOf(ctx, key.slice(box.length));
    if (file === null) ctx.KVDelete(key);
    return file === null ? [] : [shown(file)];
  });
  ctx.JSON(200, { files });
}

function add(ctx: Context, box: string): void {
  const { file_id, file_ids } = sent(ctx);
  const ids = [...(Array.isArray(file_ids) ? file_ids : []), ...(file_id === undefined ? [] : [file_id])].map(textOf);
  if (ids.length === 0) throw new Refusal(400, 'send {"file_id": ...} or {"file_ids": [...]} of completed uploads');
  const files = ids.map(id => {
    const file = metaOf(ctx, id);
    if (file === null) throw new Refusal(404, `file ${id}: not found`);
    return file;
  });
  for (const { ID } of files) ctx.KVSet(box + ID, '');
  ctx.JSON(201, { files: files.map(shown) });
}

function content(ctx: Context, box: string): void {
  const bytes = ctx.FileReadAll(heldFile(ctx, box));
  try {
    ctx.SetHTTPResponse(200, { 'Content-Type': 'application/octet-stream' }, bytes);
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    throw new Refusal(413, 'the file is too large to be answered whole; use its link');
  }
}

function remove(ctx: Context, box: string): void {
  if (!ctx.KVDelete(box + ctx.HTTP.Params.id)) throw new Refusal(404, 'not found');
  ctx.SetHTTPResponse(204, {});
}

function link(ctx: Context, box: string): void {
  ctx.JSON(200, { url: ctx.FileURL(heldFile(ctx, box)) });
}

/** A number in the query; another one when it is not there. */
function queried(ctx: Context, name: string, otherwise: bigint): bigint {
  const text = ctx.HTTP.Query[name] ?? String(otherwise);
  if (!/^\d{1,20}$/.test(text)) throw new Refusal(400, `${name} "${text}" is no number`);
  return BigInt(text);
}

/** Carried on from call to call with `?offset` and `?state`. */
function checksum(ctx: Context, box: string): void {
  const id = heldFile(ctx, box);
  let offset = Number(queried(ctx, 'offset', 0n));
  let state = queried(ctx, 'state', FNV_START);
  let isEnd = false;
  for (const end = offset + WINDOW; offset < end && !isEnd; ) {
    const { bytes, eof } = ctx.FileRead(id, offset);
    state = fnv(state, bytes);
    offset += bytes.length;
    isEnd = eof;
  }
  ctx.JSON(200, { offset, state: String(state), eof: isEnd });
}

function addNote(ctx: Context, box: string): void {
  const { name, text, ttl_ms } = sent(ctx);
  const lasts = typeof ttl_ms === 'number' ? ttl_ms : 0;
  let note: FileRef;
  try {
    note = ctx.FileStoreWithTTL(textOf(name), 'text/plain; charset=utf-8', 'document', textOf(text), lasts);
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    throw new Refusal(422, error.message);
  }
  ctx.KVSet(box + note.ID, '');
  ctx.JSON(201, shown(note));
}
