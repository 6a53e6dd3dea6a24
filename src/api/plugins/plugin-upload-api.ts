import type { Readable } from 'node:stream';
import { z } from 'zod';
import { appendAudit } from '../../audit/audit-log.ts';
import { ServiceError } from '../../base/errors.ts';
import { makeSemaphore } from '../../base/semaphore.ts';
import { NO_STORE } from '../../http/message.ts';
import type { ReceivedModule } from '../../plugins/module-storage.ts';
import { findVersion, findVersionByKey, type VersionRow } from '../../plugins/plugin-store.ts';
import { loadTriggerSettings } from '../../plugins/trigger-settings.ts';
import { actorOf, assertHasScope } from '../contract/caller.ts';
import { resource } from '../contract/contract.ts';
import type { Handle } from '../contract/endpoint.ts';
import { type FileReceiver, receiveFiles } from '../contract/receive-file.ts';
import { accessReview, triggerReview } from './access-review.ts';
import { requirement, trigger } from './manifest-schemas.ts';
import { loadPlugin, type PluginsApiParts } from './plugin-detail.ts';
import {
  finding,
  frontendJson,
  permission,
  pluginFrontend,
  pluginVersion,
  signature,
  signatureJson,
  versionJson,
  versionText,
  widening,
} from './plugin-json.ts';

const notice = z
  .object({ code: z.enum(['html_sandboxed', 'frontend_trusted']), message: z.string() })
  .meta({ id: 'UploadNotice' });

export const uploaded = pluginVersion
  .pick({ wasm_key: true, abi: true, sha256: true, size: true, memory_pages: true, installed_at: true })
  .extend({
    id: z.string().describe('Id of the plugin, from its manifest'),
    name: z.string(),
    version: versionText,
    requirements: z.array(requirement),
    triggers: z.array(trigger),
    access: z.array(triggerReview).describe('Who may call each HTTP trigger if the version is installed as it is'),
    permissions: z.array(permission),
    new_permissions: z.array(permission).describe('Those the installed version does not have'),
    widens: z
      .array(widening)
      .describe('What it widens if it is installed as it is; an upgrade wants frontend, html and policy confirmed'),
    installed_version: versionText.nullable(),
    is_installed: z.boolean().describe('Whether this very module and frontend are what is installed'),
    frontend: pluginFrontend.nullable(),
    signature,
    findings: z.array(finding),
    notices: z.array(notice).describe('What to know of its pages before installing it'),
  })
  .meta({ id: 'Upload' });

const FRONTEND = 'The ZIP of its web pages, with index.html at the top';
const media = 'multipart/form-data';

/** Modules and frontends as they come in (docs/plugins.md "Upload and installation"). */
export const pluginUploads = resource('Plugins', 'Upload of modules and frontends.', {
  upload: {
    method: 'POST',
    path: '/api/admin/plugins/upload',
    guard: 'admin',
    key: ['plugins:deploy', 'plugins:deploy:named'],
    summary: 'Upload a version of a plugin',
    description: 'The module is inspected and compiled on trial. Nothing is installed yet.',
    body: {
      media,
      description: 'A form with the module, and perhaps with its frontend',
      parts: { file: 'The module: WebAssembly with its manifest', frontend: `${FRONTEND}; may be left out` },
    },
    replies: { 201: uploaded },
    refusals: ['validation_failed', 'module_refused', 'frontend_refused'],
  },
  review: {
    method: 'GET',
    path: '/api/admin/plugins/:id/versions/:key',
    guard: 'admin',
    key: ['read', 'plugins:deploy'],
    summary: 'Read what an uploaded version asks for',
    description: 'What its upload answered, compared with the version that is installed now.',
    replies: { 200: uploaded },
  },
  module: {
    method: 'GET',
    path: '/api/admin/plugins/:id/versions/:key/module',
    guard: 'admin',
    key: ['operate', 'plugins:deploy'],
    summary: 'Download an uploaded module',
    description: 'The bytes as they were uploaded.',
    replies: { 200: { media: 'application/wasm', description: 'The module' } },
  },
  deliverFrontend: {
    method: 'PUT',
    path: '/api/admin/plugins/:id/versions/:key/frontend',
    guard: 'admin',
    key: ['plugins:deploy'],
    summary: 'Deliver a frontend with an uploaded version',
    description: 'A version that was installed already keeps the frontend it has.',
    body: { media, description: 'A form with the frontend', parts: { file: FRONTEND } },
    replies: { 200: pluginVersion },
    refusals: ['validation_failed', 'frontend_refused', 'conflict'],
  },
});

const frontendReceiver = ({ frontendBytesMax, frontends, installer }: PluginsApiParts) => ({
  receive: (file: Readable) => frontends.receive(file, frontendBytesMax),
  discard: (received: ReceivedModule) => installer.discard(received),
});

const moduleReceiver = ({ installer, moduleBytesMax }: PluginsApiParts): FileReceiver<ReceivedModule> => ({
  receive: file => installer.receive(file, moduleBytesMax),
  discard: received => installer.discard(received),
});

export const upload: Handle<typeof pluginUploads.upload, PluginsApiParts> = async (
  parts,
  { caller, request, source },
) => {
  const { installer } = parts;
  const fields = { file: moduleReceiver(parts), frontend: frontendReceiver(parts) };
  const received = await receiveFiles(request.headers, source.stream(), fields);
  const file = received.get('file');
  if (file === undefined) throw new Error('the form has no module');
  const version = await installer.admit(file, actorOf(caller, request), received.get('frontend') ?? null, id =>
    assertHasScope(caller, 'plugins:deploy', `an upload of plugin "${id}"`, id),
  );
  return { status: 201, json: await reviewJson(parts, version) };
};

/** @throws ServiceError `not_found` */
async function versionOf({ db }: PluginsApiParts, { id, key }: { id: string; key: string }): Promise<VersionRow> {
  const version = await findVersionByKey(db, id, key);
  if (version === undefined)
    throw new ServiceError('not_found', `plugin "${id}" has no version with the wasm_key "${key}"`);
  return version;
}

export const review: Handle<typeof pluginUploads.review, PluginsApiParts> = async (parts, { params }) => ({
  status: 200,
  json: await reviewJson(parts, await versionOf(parts, params)),
});

/** Others wait: each holds a whole module. */
const reading = makeSemaphore(1);

export const module: Handle<typeof pluginUploads.module, PluginsApiParts> = async (
  parts,
  { caller, params, request },
) => {
  const version = await versionOf(parts, params);
  const body = await reading(() => parts.installer.readUploaded(version));
  await appendAudit(parts.db, actorOf(caller, request), {
    action: 'plugin.read_module',
    objectType: 'plugin',
    objectId: version.pluginId,
    after: { version: version.version, wasm_key: version.wasmKey },
  });
  return {
    status: 200,
    headers: [
      ['Content-Type', 'application/wasm'],
      ['Content-Disposition', `attachment; filename="${version.pluginId}-${version.wasmKey}.wasm"`],
      NO_STORE,
    ],
    body,
  };
};

/** What an administrator reads before an installation. */
export async function reviewJson({ db, installer, schema }: PluginsApiParts, version: VersionRow) {
  const { installedVersionId } = await loadPlugin(db, version.pluginId);
  const installed = installedVersionId === null ? undefined : await findVersion(db, installedVersionId);
  return {
    id: version.pluginId,
    name: version.manifest.name,
    version: version.version,
    abi: version.manifest.abi,
    wasm_key: version.wasmKey,
    sha256: version.sha256,
    size: version.size,
    memory_pages: version.runnable.memoryPages,
    requirements: version.manifest.requirements,
    triggers: version.manifest.triggers,
    access: accessReview(version.manifest, await loadTriggerSettings(db, version.pluginId), schema),
    permissions: version.permissions,
    new_permissions: installed === undefined ? [] : version.permissions.filter(p => !installed.permissions.includes(p)),
    widens: await installer.previewWidening(version),
    installed_version: installed?.version ?? null,
    installed_at: version.installedAt,
    is_installed: installed?.sha256 === version.sha256 && installed.frontend?.sha256 === version.frontend?.sha256,
    frontend: frontendJson(version),
    signature: signatureJson(installer.signer(version)),
    findings: version.findings,
    notices: noticesOf(version),
  };
}

export const deliverFrontend: Handle<typeof pluginUploads.deliverFrontend, PluginsApiParts> = async (
  parts,
  { caller, params, request, source },
) => {
  const received = await receiveFiles(request.headers, source.stream(), { file: frontendReceiver(parts) });
  const file = received.get('file');
  if (file === undefined) throw new Error('the form has no frontend');
  const version = await parts.frontends.deliver(params.id, params.key, file, actorOf(caller, request));
  return { status: 200, json: versionJson(version, null, parts.installer.signer(version)) };
};

/** What the administrator should know of the plugin's pages before installing it; `code` is stable. */
function noticesOf({ frontend, manifest, pluginId }: VersionRow): Array<z.infer<typeof notice>> {
  const notices: Array<z.infer<typeof notice>> = [];
  if (manifest.triggers.some(t => t.type === 'http'))
    notices.push({
      code: 'html_sandboxed',
      message:
        'Answers of HTTP triggers that can run script (HTML, SVG, XML, PDF) are sandboxed: such a page has the origin "null" and sends no cookies. ' +
        `If this plugin serves pages that need more, deliver them as a frontend, or trust them with PUT /api/admin/plugins/${pluginId}/html {"trust": "trusted"}.`,
    });
  if (frontend !== null)
    notices.push({
      code: 'frontend_trusted',
      message:
        'Without plugins.origin, which gives every plugin an origin of its own, the frontend runs on the origin of this service and is trusted like the service itself: it can imitate its pages.',
    });
  return notices;
}
