import { z } from 'zod';
import { ServiceError, tooLarge } from '../../base/errors.ts';
import { dispositionOf, rangeOf } from '../../files/file-headers.ts';
import { FILE_TYPES, normalizeMimeType, parseDescription } from '../../files/file-kind.ts';
import { type FileRecord, fileRefJson } from '../../files/file-records.ts';
import type { Files } from '../../files/files.ts';
import type { AddressSigner } from '../../files/signed-address.ts';
import { isFromOrigins, type Request } from '../../http/message.ts';
import type { Principals } from '../../identity/principals.ts';
import type { InstalledPlugin, PluginRegistry } from '../../plugins/registry.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { hasTag } from '../contract/entity-tag.ts';
import { time } from '../contract/fields.ts';
import { describeAs } from '../contract/json-schema.ts';
import { text } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';

export type FilesApiParts = {
  files: Files;
  registry: PluginRegistry;
  principals: Principals;
  signer: AddressSigner;
  /** Address of this service as the sender of the request sees it. */
  baseOf(request: Request): string;
};

/** A user, and whether a browser may have sent the credential along by itself. */
type Uploader = {
  userId: number;
  cookie: boolean /** The one plugin a session of its origin is for. */;
  plugin: string | null;
};

const newFile = z.strictObject({
  plugin_id: z.string().min(1).max(100),
  name: z.string().describe('A plain file name'),
  mime_type: z.string(),
  size: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER).describe('Bytes'),
  file_type: describeAs(z.string(), {
    type: 'string',
    enum: [...FILE_TYPES],
    description: 'What the file is to a messenger or a page; "document" goes with every MIME type',
  }),
});

/** What plugins and pages see of a file (docs/files.md "FileRef"). */
export const fileRef = z
  .object({
    id: z.string(),
    name: z.string(),
    mime_type: z.string(),
    size: z.int().min(0).describe('Bytes'),
    file_type: z.enum(FILE_TYPES),
  })
  .meta({ id: 'FileRef' });

const announced = z
  .object({
    file_id: z.string(),
    upload_url: z.string().describe('Where the bytes go, here or in the S3 store'),
    upload_method: z.string(),
    upload_headers: z.record(z.string(), z.string()).describe('Headers to send as they are'),
    expires_at: time.describe('Until when the upload must be complete'),
  })
  .meta({ id: 'AnnouncedFile' });

const path = '/api/files';
const forUsers = {
  guard: 'none',
  callers: { words: 'For users, with a session or a token.', schemes: ['user_session', 'user_token'] },
  skipChangeBarrier: true,
} as const;
const forAddress = {
  guard: 'none',
  callers: { words: 'For every caller with the signed address, until it expires.', schemes: [] },
  skipChangeBarrier: true,
} as const;
const expires = text('End of the address, in seconds since 1970');
const signature = text('Signature of the address');

/** Files that browsers and API clients hand to plugins (docs/files.md "Upload"). */
export const userFiles = resource('Files', 'Files that users hand to plugins.', {
  announce: {
    method: 'POST',
    path: `${path}/init`,
    ...forUsers,
    summary: 'Announce a file',
    description: 'The answer says where the bytes go.',
    body: newFile,
    replies: { 201: announced },
    refusals: ['unauthorized', 'forbidden', 'not_found', 'quota_exceeded'],
    example: {
      body: { plugin_id: 'filebox', name: 'note.txt', mime_type: 'text/plain', size: 12, file_type: 'document' },
    },
  },
  complete: {
    method: 'POST',
    path: `${path}/:id/complete`,
    ...forUsers,
    summary: 'Complete the upload of a file',
    description: 'From then on the plugin may read the file. May be repeated.',
    replies: { 200: fileRef },
    refusals: ['unauthorized', 'forbidden', 'not_uploaded', 'upload_mismatch', 'expired', 'storage_full'],
  },
  remove: {
    method: 'DELETE',
    path: `${path}/:id`,
    ...forUsers,
    summary: 'Delete a file',
    replies: { 204: null },
    refusals: ['unauthorized', 'forbidden'],
  },
  upload: {
    method: 'PUT',
    path: `${path}/:id/content`,
    ...forAddress,
    summary: 'Upload the bytes of a file',
    description: 'At the upload_url of the announcement. The ETag of the answer is their SHA-256.',
    query: z.strictObject({ expires, size: text('Announced size'), type: text('Announced MIME type'), signature }),
    body: { media: '*/*', description: 'The bytes, with the Content-Type that was announced' },
    replies: { 200: null },
    refusals: ['forbidden', 'expired', 'conflict', 'storage_full'],
  },
  download: {
    method: 'GET',
    path: `${path}/:id/content`,
    ...forAddress,
    summary: 'Download the bytes of a file',
    description: 'At an address a plugin was given. Range, If-Range and If-None-Match count.',
    query: z.strictObject({ expires, signature }),
    replies: {
      200: { media: '*/*', description: 'The file' },
      206: { media: '*/*', description: 'The range that was asked for' },
      304: null,
    },
    refusals: ['forbidden', 'expired', 'range_not_satisfiable'],
  },
});

const announce: Handle<typeof userFiles.announce, FilesApiParts> = async (parts, { body, request }) => {
  const uploader = await authenticate(parts, request);
  const given = await body();
  const plugin = pluginFor(parts.registry, given.plugin_id);
  if (uploader.plugin !== null && uploader.plugin !== plugin.id)
    throw new ServiceError(
      'forbidden',
      `this origin belongs to plugin "${uploader.plugin}"; its session takes files for no other`,
    );
  assertPageOf(plugin, request, uploader);
  const description = parseDescription(given);
  const owner = { pluginId: plugin.id, userId: uploader.userId };
  const base = parts.baseOf(request);
  const { expiresAt, file, target } = await parts.files.announce(owner, description, given.size, base);
  const json = {
    file_id: file.id,
    upload_url: target.url,
    upload_method: target.method,
    upload_headers: target.headers,
    expires_at: expiresAt,
  };
  return { status: 201, json };
};

const complete: Handle<typeof userFiles.complete, FilesApiParts> = async (parts, { params, request }) => {
  const userId = await ownerOf(parts, request, params.id);
  return { status: 200, json: fileRefJson(await parts.files.complete(userId, params.id)) };
};

const remove: Handle<typeof userFiles.remove, FilesApiParts> = async (parts, { params, request }) => {
  await parts.files.remove(await ownerOf(parts, request, params.id), params.id);
  return { status: 204 };
};

const upload: Handle<typeof userFiles.upload, FilesApiParts> = async (parts, { params, query, request, source }) => {
  const grant = parts.signer.checkUpload(params.id, new Map(Object.entries(query)), Date.now());
  assertAnnounced(request, grant);
  const digest = await parts.files.receive(grant, source);
  return { status: 200, headers: [['ETag', `"${digest}"`]] };
};

const download: Handle<typeof userFiles.download, FilesApiParts> = async (parts, { params, query, request }) => {
  const grant = parts.signer.checkDownload(params.id, new Map(Object.entries(query)), Date.now());
  return contentReply(parts.files, await parts.files.load(grant.id), request);
};

export const filesRoutes = (parts: FilesApiParts): Route[] =>
  [
    ...serve(userFiles, parts, { announce, complete, remove, upload, download }),
    ...['/init', '/:id', '/:id/complete', '/:id/content'].map(preflight),
  ].map(route => withCors(parts.registry, route));

async function authenticate({ principals }: FilesApiParts, request: Request): Promise<Uploader> {
  const principal = await principals.find(request.headers, Date.now());
  if (principal === null)
    throw new ServiceError('unauthorized', 'log in first: the cookie user_session or a user token is needed', {
      headers: [['WWW-Authenticate', 'Bearer realm="plugin-host"']],
    });
  if (principal.kind === 'service')
    throw new ServiceError('forbidden', 'files belong to users; a service key cannot hand any over');
  return { userId: principal.userId, cookie: principal.via === 'session', plugin: principal.pluginId ?? null };
}

/** Credentials that a browser adds by itself count only from our pages and the plugin's (docs/identity.md "Requests of browsers"). */
function assertPageOf(plugin: InstalledPlugin | undefined, request: Request, uploader: Uploader): void {
  if (!uploader.cookie || isFromOrigins(request.headers, plugin?.allOrigins)) return;
  throw new ServiceError(
    'forbidden',
    'a request with a session cookie must come from this site or from an origin of the plugin',
  );
}

/** @throws ServiceError `validation_failed` when the plugin takes no files */
function pluginFor(registry: PluginRegistry, id: string): InstalledPlugin {
  const plugin = registry.find(id);
  const refuse = (message: string): ServiceError =>
    new ServiceError('validation_failed', `plugin_id ${message}`, {
      errors: [{ pointer: '/plugin_id', message, code: 'not_found' }],
    });
  if (plugin === undefined || !plugin.enabled) throw refuse(`names no plugin here: "${id}"`);
  if (!plugin.permissions.has('file')) throw refuse(`names "${id}", which takes no files`);
  return plugin;
}

/** The user who asks for something to be done with a file, whether it is theirs or not. */
async function ownerOf(parts: FilesApiParts, request: Request, id: string): Promise<number> {
  const uploader = await authenticate(parts, request);
  const file = await parts.files.find(id);
  if (uploader.plugin !== null && file !== undefined && file.pluginId !== uploader.plugin)
    throw new ServiceError('not_found', `there is no file "${id}"`);
  // The file of another user is answered like one that is not there, for every caller.
  if (file?.userId === uploader.userId) assertPageOf(parts.registry.find(file.pluginId), request, uploader);
  return uploader.userId;
}

/** CORS headers for pages of the origins that any plugin names; which plugin it is, is looked at with the request. */
function corsOf(registry: PluginRegistry, request: Request): Array<[string, string]> {
  const { origin } = request.headers;
  if (origin === undefined) return [];
  if (!registry.hasOrigin(origin)) return [['Vary', 'Origin']];
  return [
    ['Access-Control-Allow-Origin', origin],
    ['Access-Control-Allow-Credentials', 'true'],
    ['Access-Control-Expose-Headers', 'X-Request-Id, ETag, Content-Range, Accept-Ranges'],
    ['Vary', 'Origin'],
  ];
}

/** A row that pages of the origins of plugins may call. */
function withCors(registry: PluginRegistry, route: Route): Route {
  return {
    ...route,
    async handle(input) {
      const cors = corsOf(registry, input.request);
      try {
        const reply = await route.handle(input);
        return { ...reply, headers: [...reply.headers, ...cors] };
      } catch (error) {
        if (!(error instanceof ServiceError) || cors.length === 0) throw error;
        const { code, errors, extra, headers, message } = error;
        throw new ServiceError(code, message, { errors, extra, headers: [...headers, ...cors], cause: error });
      }
    },
  };
}

/** What a browser asks before it lets a page of another origin call an address. */
const preflight = (below: string): Route => ({
  method: 'OPTIONS',
  path: `${path}${below}`,
  guard: 'none',
  skipChangeBarrier: true,
  handle: () => ({
    status: 204,
    headers: [
      ['Access-Control-Allow-Methods', 'GET, HEAD, PUT, POST, DELETE'],
      ['Access-Control-Allow-Headers', 'Content-Type, Authorization, Range, If-Range'],
      ['Access-Control-Max-Age', '600'],
    ],
    body: '',
  }),
});

/** What is sent must be what was announced, as far as its headers tell; its bytes are counted as they come. */
function assertAnnounced(request: Request, grant: { size: number; type: string }): void {
  const type = request.headers['content-type'];
  if (type === undefined || normalizeMimeType(type) !== grant.type)
    throw new ServiceError(
      'unsupported_media_type',
      `this address takes Content-Type: ${grant.type}; send the upload_headers as they were given`,
    );
  const length = request.headers['content-length'];
  if (length === undefined || Number(length) === grant.size) return;
  if (Number(length) > grant.size) throw tooLarge(grant.size, 'the size this address was made for');
  throw new ServiceError('malformed_request', `the body has ${length} bytes; this address was made for ${grant.size}`);
}

/** The bytes of a file, whole or a range of them (RFC 9110 section 14). */
function contentReply(files: Files, file: FileRecord, request: Request) {
  const etag = `"${file.digest}"`;
  const headers: Array<[string, string]> = [
    ['Content-Type', file.mimeType],
    ['Content-Disposition', dispositionOf(file)],
    // Whatever a user uploaded runs nothing here: this is the origin of the administration.
    ['Content-Security-Policy', "default-src 'none'; object-src 'none'; sandbox; frame-ancestors 'none'"],
    ['Referrer-Policy', 'no-referrer'],
    ['Cache-Control', 'private, no-cache'],
    ['Accept-Ranges', 'bytes'],
    ['ETag', etag],
  ];
  const ifRange = request.headers['if-range'];
  // Of GET alone (section 14.2), and only when there is something to send (section 13.2.2).
  const isAsked = request.method === 'GET' && !hasTag(request.headers, etag);
  const isSame = ifRange === undefined || ifRange === etag;
  const range = isAsked && isSame ? rangeOf(request.headers.range, file.size) : null;
  if (range === 'unsatisfiable')
    throw new ServiceError('range_not_satisfiable', `the file has ${file.size} bytes; the range lies outside`, {
      headers: [['Content-Range', `bytes */${file.size}`]],
    });
  const [from, to] = range === null ? [0, file.size - 1] : [range.from, range.to];
  const body = { length: to - from + 1, open: () => files.stream(file, from, to) };
  if (range === null) return { status: 200 as const, headers, body };
  headers.push(['Content-Range', `bytes ${from}-${to}/${file.size}`]);
  return { status: 206 as const, headers, body };
}
