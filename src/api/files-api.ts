import { z } from 'zod';
import { ServiceError, tooLarge } from '../base/errors.ts';
import { LIMITS } from '../base/limits.ts';
import type { Database } from '../db/database.ts';
import { dispositionOf, rangeOf } from '../files/file-headers.ts';
import { normalizeMimeType, parseDescription } from '../files/file-kind.ts';
import {
  type FileFilter,
  type FileRecord,
  type FileUsage,
  fileRefJson,
  listFiles,
  readUsage,
} from '../files/file-records.ts';
import type { Files } from '../files/files.ts';
import type { AddressSigner } from '../files/signed-address.ts';
import { isFromOrigins, jsonReply, type Reply, type Request } from '../http/message.ts';
import type { Principals } from '../identity/principals.ts';
import type { InstalledPlugin, PluginRegistry } from '../plugins/registry.ts';
import { parseBody } from './body.ts';
import { actorOf, pageOf, queryOf, type Route, type RouteInput } from './route.ts';

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

const initBody = z.strictObject({
  plugin_id: z.string().min(1).max(100),
  name: z.string(),
  mime_type: z.string(),
  size: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER),
  file_type: z.string(),
});

const METHODS = 'GET, HEAD, PUT, POST, DELETE';

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

/** Files that browsers and API clients hand to plugins (docs/files.md "Upload"). */
export function filesRoutes(parts: FilesApiParts): Route[] {
  const { baseOf, files, principals, registry, signer } = parts;

  const authenticate = async (request: Request): Promise<Uploader> => {
    const principal = await principals.find(request.headers, Date.now());
    if (principal === null)
      throw new ServiceError('unauthorized', 'log in first: the cookie user_session or a user token is needed', {
        headers: [['WWW-Authenticate', 'Bearer realm="plugin-host"']],
      });
    if (principal.kind === 'service')
      throw new ServiceError('forbidden', 'files belong to users; a service key cannot hand any over');
    return { userId: principal.userId, cookie: principal.via === 'session', plugin: principal.pluginId ?? null };
  };
  /** What a browser sends along by itself counts only from our pages and the plugin's (docs/identity.md "Requests of browsers"). */
  const fromPageOf = (plugin: InstalledPlugin | undefined, request: Request, uploader: Uploader): void => {
    if (!uploader.cookie || isFromOrigins(request.headers, plugin?.origins)) return;
    throw new ServiceError(
      'forbidden',
      'a request with a session cookie must come from this site or from an origin of the plugin',
    );
  };
  const pluginFor = (id: string): InstalledPlugin => {
    const plugin = registry.find(id);
    const refuse = (message: string): ServiceError =>
      new ServiceError('validation_failed', `plugin_id ${message}`, { errors: [{ pointer: '/plugin_id', message }] });
    if (plugin === undefined || !plugin.enabled) throw refuse(`names no plugin here: "${id}"`);
    if (!plugin.permissions.has('file')) throw refuse(`names "${id}", which takes no files`);
    return plugin;
  };
  const route = (method: string, path: string, handle: Route['handle']): Route => ({
    method,
    path: `/api/files${path}`,
    guard: 'none',
    skipChangeBarrier: true,
    async handle(input) {
      const cors = corsOf(registry, input.request);
      try {
        const reply = await handle(input);
        return { ...reply, headers: [...reply.headers, ...cors] };
      } catch (error) {
        if (!(error instanceof ServiceError) || cors.length === 0) throw error;
        const { code, errors, extra, headers, message } = error;
        throw new ServiceError(code, message, { errors, extra, headers: [...headers, ...cors], cause: error });
      }
    },
  });
  const preflight = (path: string): Route =>
    route('OPTIONS', path, () => ({
      status: 204,
      headers: [
        ['Access-Control-Allow-Methods', METHODS],
        ['Access-Control-Allow-Headers', 'Content-Type, Authorization, Range, If-Range'],
        ['Access-Control-Max-Age', '600'],
      ],
      body: '',
    }));
  const own = async ({ request }: RouteInput): Promise<number> => {
    const uploader = await authenticate(request);
    const file = await files.find(request.params.id!);
    if (uploader.plugin !== null && file !== undefined && file.pluginId !== uploader.plugin)
      throw new ServiceError('not_found', `there is no file "${request.params.id}"`);
    // The file of another user is answered like one that is not there, for every caller.
    if (file?.userId === uploader.userId) fromPageOf(registry.find(file.pluginId), request, uploader);
    return uploader.userId;
  };

  return [
    route('POST', '/init', async ({ json, request }) => {
      const uploader = await authenticate(request);
      const body = parseBody(initBody, await json());
      const plugin = pluginFor(body.plugin_id);
      if (uploader.plugin !== null && uploader.plugin !== plugin.id)
        throw new ServiceError(
          'forbidden',
          `this origin belongs to plugin "${uploader.plugin}"; its session takes files for no other`,
        );
      fromPageOf(plugin, request, uploader);
      const description = parseDescription(body);
      const owner = { pluginId: plugin.id, userId: uploader.userId };
      const { expiresAt, file, target } = await files.announce(owner, description, body.size, baseOf(request));
      return jsonReply(201, {
        file_id: file.id,
        upload_url: target.url,
        upload_method: target.method,
        upload_headers: target.headers,
        expires_at: expiresAt.toISOString(),
      });
    }),
    route('POST', '/:id/complete', async input =>
      jsonReply(200, fileRefJson(await files.complete(await own(input), input.request.params.id!))),
    ),
    route('DELETE', '/:id', async input => {
      await files.remove(await own(input), input.request.params.id!);
      return { status: 204, headers: [], body: '' };
    }),
    route('PUT', '/:id/content', async ({ body, request }) => {
      const query = queryOf(request, ['expires', 'size', 'type', 'signature']);
      const grant = signer.checkUpload(request.params.id!, query, Date.now());
      assertAnnounced(request, grant);
      const digest = await files.receive(grant, body);
      return { status: 200, headers: [['ETag', `"${digest}"`]], body: '' };
    }),
    route('GET', '/:id/content', async ({ request }) => {
      const query = queryOf(request, ['expires', 'signature']);
      const grant = signer.checkDownload(request.params.id!, query, Date.now());
      return contentReply(files, await files.load(grant.id), request);
    }),
    ...['/init', '/:id', '/:id/complete', '/:id/content'].map(preflight),
  ];
}

/** What administrators see of a plugin's files, and take away. */
export function adminFilesRoutes({ db, files }: { db: Database; files: Files }): Route[] {
  const path = '/api/admin/plugins/:id/files';
  return [
    {
      method: 'GET',
      path,
      guard: 'admin',
      key: ['read'],
      async handle({ request }) {
        const query = queryOf(request, ['limit', 'cursor', 'user', 'state']);
        const filter = filterOf(request.params.id!, query);
        const [page, usage] = await Promise.all([
          pageOf(
            query,
            (before, limit) => listFiles(db, filter, before, limit),
            ({ file: f }) => ({
              ...fileRefJson(f),
              user_id: f.userId,
              state: f.cancelled ? 'cancelled' : f.state,
              store: f.store,
              created_at: f.createdAt,
              expires_at: f.expiresAt,
            }),
          ),
          readUsage(db, filter.pluginId, LIMITS.listLimitMax),
        ]);
        const usageJson = ({ bytes, files, pending }: FileUsage) => ({ files, pending, bytes });
        return jsonReply(200, {
          ...page,
          usage: usageJson(usage.all),
          owners: usage.owners.map(u => ({ user_id: u.userId, ...usageJson(u) })),
        });
      },
    },
    {
      method: 'DELETE',
      path: `${path}/:file`,
      guard: 'admin_recent',
      key: ['admin'],
      async handle({ caller, request }) {
        await files.removeAny(request.params.id!, request.params.file!, actorOf(caller, request));
        return { status: 204, headers: [], body: '' };
      },
    },
  ];
}

function filterOf(pluginId: string, query: ReadonlyMap<string, string>): FileFilter {
  const refuse = (name: string, message: string): ServiceError =>
    new ServiceError('validation_failed', `${name} ${message}`, { errors: [{ pointer: `query:${name}`, message }] });
  const user = query.get('user');
  if (user !== undefined && !/^[1-9]\d{0,14}$/.test(user)) throw refuse('user', 'must be the id of a user');
  const state = query.get('state');
  if (state !== undefined && state !== 'pending' && state !== 'ready')
    throw refuse('state', 'must be pending or ready');
  return { pluginId, userId: user === undefined ? null : Number(user), state: state ?? null };
}

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
function contentReply(files: Files, file: FileRecord, request: Request): Reply {
  const etag = `"${file.digest}"`;
  const headers: Array<[string, string]> = [
    ['Content-Type', file.mimeType],
    ['Content-Disposition', dispositionOf(file)],
    // Whatever a user uploaded runs nothing here: this is the origin of the administration.
    ['Content-Security-Policy', "default-src 'none'; sandbox; frame-ancestors 'none'"],
    ['Referrer-Policy', 'no-referrer'],
    ['Cache-Control', 'private, no-cache'],
    ['Accept-Ranges', 'bytes'],
    ['ETag', etag],
  ];
  if (request.headers['if-none-match'] === etag) return { status: 304, headers, body: '' };
  const ifRange = request.headers['if-range'];
  const range = ifRange === undefined || ifRange === etag ? rangeOf(request.headers.range, file.size) : null;
  if (range === 'unsatisfiable')
    throw new ServiceError('range_not_satisfiable', `the file has ${file.size} bytes; the range lies outside`, {
      headers: [['Content-Range', `bytes */${file.size}`]],
    });
  const [from, to] = range === null ? [0, file.size - 1] : [range.from, range.to];
  return {
    status: range === null ? 200 : 206,
    headers: range === null ? headers : [...headers, ['Content-Range', `bytes ${from}-${to}/${file.size}`]],
    body: { length: to - from + 1, open: () => files.stream(file, from, to) },
  };
}
