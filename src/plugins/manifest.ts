import { z } from 'zod';
import { ABI_NEWEST, ABI_UNSTATED } from '../abi/host-functions.ts';
import { parseBoundedJson } from '../base/bounded-json.ts';
import { type FieldError, messageOf } from '../base/errors.ts';
import { fieldErrorsOf } from '../base/field-errors.ts';
import { LIMITS } from '../base/limits.ts';
import { canonicalPath } from '../http/plain-path.ts';
import { type KnownMembers, unknownMembers } from './unknown-members.ts';

/** HTTP methods of triggers. */
export const HTTP_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

const configField = z.object({
  type: z.literal('string').default('string'),
  name: z.string().min(1).max(64).describe('Name by which the plugin reads the value'),
  description: z.string().max(1000).describe('What it is for; shown to the administrator').default(''),
  required: z.boolean().describe('Without a value the plugin cannot be installed').default(false),
  sensitive: z.boolean().describe('A secret: stored encrypted, and never shown again').default(false),
});
export type ConfigField = z.infer<typeof configField>;

const kinds = ['sql', 'kv', 'network', 'notify', 'events', 'plugins:call', 'file'] as const;

/** Something a plugin asks its host for; where it has config fields, the administrator fills them in. */
export const requirement = z
  .object({
    kind: z.enum(kinds).describe('What the plugin asks for; each is a permission'),
    description: z.string().max(1000).describe('What it is for; shown to the administrator').default(''),
    name: z.string().min(1).max(64).describe('Logical name of the database; only for sql').optional(),
    target: z.string().min(1).max(64).describe('Id of the plugin to call; only for plugins:call').optional(),
    config: z.array(configField).max(100).describe('Values that the administrator fills in').default([]),
  })
  .refine(r => r.kind !== 'plugins:call' || r.target !== undefined, {
    path: ['target'],
    message: 'a plugin dependency needs the id of its target',
  });
export type Requirement = z.infer<typeof requirement>;

const triggerName = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/, 'letters, digits, _ . and - only, at most 64')
  .describe('Name of the trigger, once in a plugin; for a messenger trigger the word of the command');
const triggerDescription = z.string().max(1000).describe('What it does; shown to administrators').default('');

/** Access that the author suggests; it takes effect only if an administrator accepts it (`accept_suggested_access`). */
export const suggestedAccess = z
  .strictObject({
    users: z.boolean().describe('Users may call').default(false),
    service_keys: z.boolean().describe('Programs with a service key may call').default(false),
    policy: z
      .string()
      .max(LIMITS.policyCharsMax)
      .describe('A CEL expression that must be true as well; empty for none')
      .default(''),
    public: z.boolean().describe('Every caller may call, without a login; then none of the others').default(false),
    reason: z
      .string()
      .trim()
      .min(1, 'say why, for the administrator')
      .max(1000)
      .describe('Why; shown to the administrator who decides'),
  })
  .refine(a => !a.public || (!a.users && !a.service_keys && a.policy === ''), {
    path: ['public'],
    message: 'a public trigger has no policy and asks for neither users nor service keys',
  })
  .refine(a => a.public || a.users || a.service_keys, {
    path: ['users'],
    message: 'name who may call: users, service_keys or public',
  });
export type SuggestedAccess = z.infer<typeof suggestedAccess>;

const LIKE = 'a path like /profile or /items/:id';
const SHOWN_CHARACTERS = 100;

/** A value as a message shows it; the end of a long text is left out. */
function shown(value: unknown): string {
  if (typeof value !== 'string' || value.length <= SHOWN_CHARACTERS) return JSON.stringify(value);
  return JSON.stringify(`${value.slice(0, SHOWN_CHARACTERS).replace(/[\uD800-\uDBFF]$/, '')}…`);
}

/** One part of a path, between slashes. */
const SEGMENT = /^([A-Za-z0-9._~!$&'()*+,;=@%-]*|:(?!__)[A-Za-z_][A-Za-z0-9_]*)$/;

/** What is wrong with a path. */
function pathMistake(path: string): string {
  const text = shown(path);
  if (!path.startsWith('/')) return `${text} does not begin with /; ${LIKE}`;
  if (path.includes('//')) return `${text} has an empty segment; ${LIKE}`;
  const [, braced] = /\{([^{}/]*)\}/.exec(path) ?? [];
  if (braced !== undefined) return `${text}: a parameter is written :${braced || 'id'}, not {${braced}}; ${LIKE}`;
  if (path.includes('/:__')) return `${text}: the name of a parameter does not begin with two underscores; ${LIKE}`;
  const wrong = path.split('/').find(segment => !SEGMENT.test(segment)) ?? '';
  return `${text}: the segment ${shown(wrong)} is neither letters of an address nor a parameter; ${LIKE}`;
}

const methodMistake = (input: unknown): string =>
  `${shown(input)} is no HTTP method: it is one of ${HTTP_METHODS.join(', ')}, in capital letters`;

/** An endpoint of a plugin. */
export const httpTrigger = z.object({
  name: triggerName,
  type: z.literal('http'),
  description: triggerDescription,
  path: z
    .string()
    .max(512)
    .regex(/^(\/([A-Za-z0-9._~!$&'()*+,;=@%-]+|:(?!__)[A-Za-z_][A-Za-z0-9_]*))*\/?$/, {
      error: ({ input }) => pathMistake(String(input)),
    })
    .describe('Path below /api/triggers/http/<plugin id>, like /profile or /items/:id; empty for the root'),
  methods: z
    .array(z.enum(HTTP_METHODS, { error: ({ input }) => methodMistake(input) }))
    .min(1, 'at least one HTTP method')
    .describe('Methods it answers'),
  access: suggestedAccess.describe('Who should call it, as its author sees it').optional(),
});

/** A command of a plugin; its name is the word users write. */
export const messengerTrigger = z.object({
  name: triggerName,
  type: z.literal('messenger'),
  description: triggerDescription,
});

/**
 * `TriggerHTTP` and `TriggerMessenger` (docs/plugins.md "Manifest") are accepted as well as the short words of the
 * kits.
 */
const trigger = z.preprocess(
  value => {
    if (typeof value !== 'object' || value === null || !('type' in value)) return value;
    const type = value.type === 'TriggerHTTP' ? 'http' : value.type === 'TriggerMessenger' ? 'messenger' : value.type;
    return { ...value, type };
  },
  z.discriminatedUnion('type', [httpTrigger, messengerTrigger], {
    error: issue => (issue.code === 'invalid_union' ? 'must be "http" or "messenger"' : undefined),
  }),
);
export type HttpTrigger = z.infer<typeof httpTrigger>;
export type MessengerTrigger = z.infer<typeof messengerTrigger>;

/** What the section `plugin.manifest` holds. What spans several parts of it is checked by `parseManifest`. */
export const manifest = z.object({
  abi: z
    .int()
    .min(1, `must be a protocol version of this host: 1 to ${ABI_NEWEST}`)
    .describe('Version of the protocol whose functions the module imports')
    .default(ABI_UNSTATED),
  id: z
    .string()
    .regex(
      /^[a-z0-9][a-z0-9_-]{0,63}$/,
      'must have lower-case letters, digits, _ and -, at most 64, and begin with a letter or digit',
    )
    .describe('Id of the plugin, used in addresses, permissions and scopes'),
  name: z.string().min(1).max(200).describe('Name that people read'),
  version: z.string().min(1).max(64).describe('Version of the plugin, like 1.0.0'),
  requirements: z.array(requirement).max(100).describe('What the plugin asks its host for').default([]),
  triggers: z.array(trigger).max(500).describe('HTTP endpoints and commands of messengers').default([]),
  start: z
    .literal('once', 'leave it out, or write "once": the start then runs at the upload alone')
    .describe('Whether what the start drew at random or read from the clock may be shared by all executions')
    .optional(),
});
export type Manifest = z.infer<typeof manifest>;

const KNOWN_MEMBERS: KnownMembers = [
  [/^$/, Object.keys(manifest.shape)],
  [/^\/requirements\/\d+$/, Object.keys(requirement.shape)],
  [/^\/requirements\/\d+\/config\/\d+$/, Object.keys(configField.shape)],
  [/^\/triggers\/\d+$/, Object.keys(httpTrigger.shape)],
];

/** Sections of a config object, which no field may be named after (docs/plugins.md "Requirements"). */
export const CONFIG_SECTIONS: readonly string[] = ['databases', 'network'];

/** A path with the names of parameters removed. Two HTTP triggers must not have the same one. */
export function routeShape(path: string): string {
  return canonicalPath(path)
    .replace(/:[^/]+/g, ':')
    .replace(/(.)\/$/, '$1');
}

/** Commands that the service answers itself (docs/messengers.md "Commands"). */
const OWN_COMMANDS: ReadonlySet<string> = new Set(['start', 'link', 'unlink', 'help']);

function collisions(m: Manifest): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Map<string, number>();
  const commands = new Map<string, string>();
  const routes = new Map<string, string>();
  m.triggers.forEach((t, i) => {
    if (names.has(t.name))
      errors.push({
        pointer: `/triggers/${i}/name`,
        message: `the name "${t.name}" is used twice: rename one of the triggers`,
      });
    names.set(t.name, i);
    if (t.type !== 'http') {
      const word = t.name.toLowerCase();
      const same = commands.get(word);
      if (OWN_COMMANDS.has(word))
        errors.push({
          pointer: `/triggers/${i}/name`,
          message: `/${t.name} is a command of the service itself: rename it`,
        });
      if (same !== undefined && same !== t.name)
        errors.push({
          pointer: `/triggers/${i}/name`,
          message: `"${t.name}" and "${same}" are the same command for those who write them: rename one`,
        });
      commands.set(word, t.name);
      return;
    }
    const parameters = t.path.split('/').filter(segment => segment.startsWith(':'));
    const doubled = parameters.find((parameter, k) => parameters.indexOf(parameter) < k);
    if (doubled !== undefined)
      errors.push({
        pointer: `/triggers/${i}/path`,
        message: `${t.path} has the parameter ${doubled} twice: rename one`,
      });
    for (const method of new Set(t.methods)) {
      const key = `${method} ${routeShape(t.path)}`;
      const other = routes.get(key);
      if (other !== undefined)
        errors.push({
          pointer: `/triggers/${i}/path`,
          message: `${method} ${t.path || '/'} collides with trigger "${other}"`,
        });
      else routes.set(key, t.name);
    }
  });
  const databases = new Set<string>();
  m.requirements.forEach((r, i) => {
    r.config.forEach(({ name }, k) => {
      if (CONFIG_SECTIONS.includes(name))
        errors.push({
          pointer: `/requirements/${i}/config/${k}/name`,
          message: `"${name}" is the name of a section of the configuration; choose another name for the field`,
        });
    });
    if (r.kind !== 'sql') return;
    const name = r.name ?? 'default';
    if (databases.has(name))
      errors.push({ pointer: `/requirements/${i}/name`, message: `the database "${name}" is required twice` });
    databases.add(name);
  });
  return errors;
}

/** Adds to a mistake what stands there, for an administrator who has the module and not its source. */
function withValue(error: FieldError, manifest: unknown): FieldError {
  // A member that is not known is wrong itself, and a rule over several members is about no value.
  if (error.code === undefined || error.code === 'unknown_field') return error;
  const value = valueAt(manifest, error.pointer);
  if (value === undefined || (typeof value === 'object' && value !== null)) return error;
  const text = shown(value);
  return error.message.startsWith(text) ? error : { ...error, message: `${text}: ${error.message}` };
}

/** What stands at a JSON pointer (RFC 6901); undefined where nothing does. */
function valueAt(whole: unknown, pointer: string): unknown {
  return pointer
    .split('/')
    .slice(1)
    .map(name => name.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>(
      (at, name) =>
        typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? Reflect.get(at, name) : undefined,
      whole,
    );
}

/**
 * Turns the JSON of a `plugin.manifest` section (or of `plugin_describe`) into a manifest.
 *
 * @param text UTF-8 decoded JSON
 * @returns the manifest with the members that have no effect, or all mistakes in it
 */
export function parseManifest(
  text: string,
): { ok: true; manifest: Manifest; unknown: FieldError[] } | { ok: false; errors: FieldError[] } {
  let value: unknown;
  try {
    value = parseBoundedJson(text);
  } catch (error) {
    return {
      ok: false,
      errors: [{ pointer: '', message: `the manifest cannot be read as JSON: ${messageOf(error)}` }],
    };
  }
  if (JSON.stringify(value)?.includes('\\u0000'))
    return { ok: false, errors: [{ pointer: '', message: 'the manifest contains a NUL character' }] };
  const parsed = manifest.safeParse(value);
  if (!parsed.success) return { ok: false, errors: fieldErrorsOf(parsed.error).map(e => withValue(e, value)) };
  if (parsed.data.abi > ABI_NEWEST)
    return {
      ok: false,
      errors: [
        {
          pointer: '/abi',
          message: `the plugin needs protocol version ${parsed.data.abi}; this host speaks 1 to ${ABI_NEWEST}`,
        },
      ],
    };
  const errors = collisions(parsed.data);
  if (errors.length > 0) return { ok: false, errors };
  return { ok: true, manifest: parsed.data, unknown: unknownMembers(value, parsed.data, KNOWN_MEMBERS) };
}

/** The permission to call a plugin. */
export const callPermission = (target: string): string => `plugins:call:${target}`;

/** The permission keys of a manifest's requirements (docs/plugins.md "Requirements"), sorted, without duplicates. */
export function permissionsOf(m: Manifest): string[] {
  return [
    ...new Set(m.requirements.map(r => (r.kind === 'plugins:call' ? callPermission(r.target ?? '') : r.kind))),
  ].sort();
}

/** All config fields of a manifest's requirements. */
export function configFieldsOf(m: Manifest): ConfigField[] {
  return m.requirements.flatMap(r => r.config);
}

/** The HTTP triggers of a manifest. */
export function httpTriggersOf(m: Manifest): HttpTrigger[] {
  return m.triggers.filter(t => t.type === 'http');
}

/** Logical names of the databases a plugin requires. */
export function databasesOf(m: Manifest): string[] {
  return m.requirements.filter(r => r.kind === 'sql').map(r => r.name ?? 'default');
}
