import { z } from 'zod';
import { configFieldsOf } from '../../plugins/manifest.ts';
import type { SignatureState } from '../../plugins/module-signature.ts';
import type { PluginRow, VersionRow } from '../../plugins/plugin-store.ts';
import { WIDENING_KINDS } from '../../plugins/widening.ts';
import { crash, SUSPENSION_REASONS, type Suspension } from '../../records/suspension.ts';
import { id, pluginId, time } from '../contract/fields.ts';
import { accessWord } from './access-review.ts';
import { httpTrigger, messengerTrigger, requirement } from './manifest-schemas.ts';

/** Plugins and their versions as answers show them. */

const count = z.int().nonnegative();

export const versionText = z.string().describe('Version as its author calls it');
export const wasmKey = z.string().describe('Names this version at installing and rolling back');
export const sha256 = z.string().describe('SHA-256 of the file as it was uploaded, in hexadecimal digits');
export const permission = z
  .string()
  .describe('What the plugin may do: sql, network, plugins:call:<plugin id> and so on');

export const memoryPages = z.object({ min: count, max: count }).describe('Pages of 64 KiB that the module may have');

export const pluginFrontend = z
  .object({ sha256, packed_bytes: count, files: count, bytes: count })
  .meta({ id: 'PluginFrontend', description: 'The ZIP of web pages delivered with a version' });

export const frontendJson = ({ frontend: f }: VersionRow) =>
  f === null ? null : { sha256: f.sha256, packed_bytes: f.packedBytes, files: f.files, bytes: f.bytes };

export const finding = z
  .object({
    level: z.enum(['refusal', 'warning', 'note']),
    rule: z.string(),
    message: z.string(),
    where: z.string().optional(),
  })
  .meta({ id: 'Finding', description: 'What the inspection at upload says of a module' });

/** Who signed a module, as the configuration tells now. */
export const signature = z
  .object({
    state: z
      .enum(['none', 'trusted', 'unknown', 'wrong'])
      .describe('trusted: by a key of plugins.trusted_keys; unknown: by another key; wrong: the bytes are others'),
    key_id: z.string().nullable().describe('Id of the key, as minisign prints it'),
    signer: z.string().nullable().describe('Name of the key in plugins.trusted_keys'),
    comment: z.string().nullable().describe('What the signer wrote with it'),
  })
  .meta({ id: 'ModuleSignature' });

export const signatureJson = ({ comment, keyId, signer, state }: SignatureState) => ({
  state,
  key_id: keyId,
  signer,
  comment,
});

export const widening = z
  .object({
    kind: z
      .enum(WIDENING_KINDS)
      .describe(
        'permission, network, database: rights; frontend, html: script on this origin; policy, public: who may call',
      ),
    name: z.string().describe('The permission, the database or the trigger; empty where the kind says it all'),
    message: z.string(),
  })
  .meta({ id: 'Widening', description: 'What an installation widens' });

export const pluginVersion = z
  .object({
    wasm_key: wasmKey,
    version: versionText,
    abi: z.int().positive().describe('Version of the plugin interface it is written for'),
    sha256,
    size: count.describe('Bytes of the module as it was uploaded'),
    permissions: z.array(permission),
    memory_pages: memoryPages,
    uploaded_at: time,
    installed_at: time.nullable().describe('When it was installed last; null for never'),
    installed: z.boolean().describe('Whether it is the version that runs'),
    frontend: pluginFrontend.nullable(),
    signature,
  })
  .meta({ id: 'PluginVersion' });

export function versionJson(v: VersionRow, installedId: number | null, signer: SignatureState) {
  return {
    wasm_key: v.wasmKey,
    version: v.version,
    abi: v.manifest.abi,
    sha256: v.sha256,
    size: v.size,
    permissions: v.permissions,
    memory_pages: v.runnable.memoryPages,
    uploaded_at: v.uploadedAt,
    installed_at: v.installedAt,
    installed: v.id === installedId,
    frontend: frontendJson(v),
    signature: signatureJson(signer),
  };
}

const configValue = z
  .object({
    name: z.string(),
    description: z.string(),
    required: z.boolean(),
    sensitive: z.boolean(),
    is_set: z.boolean().describe('Whether it has a value, which of a sensitive field is not shown'),
    value: z.string().nullable().optional().describe('Null when not set; absent for sensitive fields'),
  })
  .meta({ id: 'ConfigValue' });

/**
 * Config values of an installation; sensitive ones are never shown.
 *
 * @param secrets names of the sensitive fields that have a value
 */
export function configJson(v: VersionRow, secrets: ReadonlySet<string>) {
  return configFieldsOf(v.manifest).map(f => ({
    name: f.name,
    description: f.description,
    required: f.required,
    sensitive: f.sensitive,
    is_set: f.sensitive ? secrets.has(f.name) : v.config[f.name] !== undefined,
    ...(f.sensitive ? {} : { value: v.config[f.name] ?? null }),
  }));
}

export const suspension = z
  .object({
    trigger: z.string().nullable().describe('Null for the whole plugin'),
    version_id: id.nullable().describe('The version that crashed the service; null for suspensions of triggers'),
    caller: z.string().nullable().describe('The caller for whom a trigger is suspended; null for all callers'),
    callers: count.describe('Callers whose executions failed'),
    since: time,
    until: time.nullable().describe('Null until an administrator resumes it'),
    reason: z
      .enum(SUSPENSION_REASONS)
      .describe('How the last execution failed; version_crashed: the version was running when the service crashed'),
    failure: z.string().nullable().describe('What the last failed execution of a trigger said'),
    version: versionText.nullable().describe('The version that was running in the crashes'),
    crashes: z.array(crash).describe('The crashes of the service it was running in'),
    cause: z.string().describe('All of this as a sentence in English'),
  })
  .meta({ id: 'Suspension' });

/** A suspension: of the plugin (a version that crashed the service), of a trigger, or of a trigger for one caller. */
export const suspensionJson = (s: Suspension) => ({
  trigger: s.trigger === '' ? null : s.trigger,
  version_id: s.versionId === 0 ? null : s.versionId,
  caller: s.caller,
  callers: s.callers,
  since: s.since,
  until: s.until,
  reason: s.reason,
  failure: s.failure,
  version: s.version,
  crashes: s.crashes,
  cause: s.cause,
});

export const frontendAccess = z.enum(['public', 'session']).describe('session: for logged-in users alone');
export const htmlTrust = z
  .enum(['trusted', 'sandboxed'])
  .describe('Whether answers of HTTP triggers that can run script go out without a sandbox');

export const pluginSummary = z
  .object({
    id: pluginId,
    name: z.string().nullable().describe('From the manifest of the installed version; null without one'),
    version: versionText.nullable(),
    state: z.enum(['uploaded', 'enabled', 'disabled']).describe('uploaded: no version is installed'),
    frontend_origins: z.array(z.string()).describe('Origins of pages that may call its triggers'),
    html: z.object({ trust: htmlTrust }),
    frontend_access: frontendAccess,
    frontend_url: z.string().nullable().describe('Path of its pages; null without a frontend'),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'PluginSummary' });

export const listedPlugin = pluginSummary
  .extend({
    failed_24h: count.describe('Executions that failed in the last 24 hours'),
    suspended: z.boolean().describe('Whether it, or one of its triggers or commands, is suspended for all callers'),
  })
  .meta({ id: 'ListedPlugin' });

export function pluginJson(p: PluginRow, v: VersionRow | undefined) {
  return {
    id: p.id,
    name: v?.manifest.name ?? null,
    version: v?.version ?? null,
    state: v === undefined ? ('uploaded' as const) : p.enabled ? ('enabled' as const) : ('disabled' as const),
    frontend_origins: p.frontendOrigins,
    html: { trust: p.htmlTrusted ? ('trusted' as const) : ('sandboxed' as const) },
    frontend_access: p.frontendAccess,
    frontend_url: v?.frontend == null ? null : `/plugins/${p.id}/app/`,
    created_at: p.createdAt,
    updated_at: p.updatedAt,
  };
}

/** A trigger of the installed version, with who may call it. */
export const installedTrigger = z.discriminatedUnion('type', [
  httpTrigger.extend({
    effective_access: accessWord.optional().describe('Absent while this host cannot read the plugin'),
  }),
  messengerTrigger,
]);

export const plugin = pluginSummary
  .extend({
    installed: pluginVersion.nullable(),
    requirements: z.array(requirement),
    permissions: z.array(permission),
    config: z.array(configValue),
    network: z
      .object({
        hosts: z.array(z.string()).describe('The only hosts it may reach; empty: every public one'),
        private: z.array(z.string()).describe('Ranges that are not public and may be reached all the same'),
      })
      .nullable()
      .describe('Where it may send requests; null without that permission'),
    findings: z.array(finding),
    triggers: z.array(installedTrigger),
    quarantine: z.array(suspension).describe('What is suspended now'),
    called_by: z.array(z.string()).describe('Ids of the installed plugins that may call it'),
  })
  .meta({ id: 'Plugin' });
