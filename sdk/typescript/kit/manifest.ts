import type { Context } from './context.ts';

/** What a plugin declares about itself (docs/plugins.md "Manifest"). */

/** A field of the configuration, which the administrator fills in at the installation. */
export class ConfigField {
  readonly type = 'string';
  readonly name: string;
  readonly description: string;
  required = false;
  sensitive = false;

  constructor(name: string, description: string) {
    this.name = name;
    this.description = description;
  }
  /** The plugin cannot be installed without it. */
  Required(): this {
    this.required = true;
    return this;
  }
  /** A secret: stored encrypted, and never shown again. */
  Sensitive(): this {
    this.sensitive = true;
    return this;
  }
}

/**
 * A text field of the configuration, which a handler reads with `ctx.Config(name)`. Also exported as `String`.
 *
 * @example HTTP('Asks the weather service').WithConfig(ConfigFields(StringField('api_key', 'Key of the service').Required().Sensitive())).Build()
 */
export const StringField = (name: string, description: string): ConfigField => new ConfigField(name, description);

/** The fields of `WithConfig`. */
export const ConfigFields = (...fields: ConfigField[]): ConfigField[] => fields;

type Kind = 'sql' | 'kv' | 'network' | 'notify' | 'events' | 'plugins:call' | 'file';

/** Something a plugin asks its host for; made by `KV`, `Database` and their like. */
export class Requirement {
  readonly kind: Kind;
  readonly description: string;
  name?: string;
  readonly target?: string;
  config: ConfigField[] = [];

  constructor(kind: Kind, description: string, target?: string) {
    this.kind = kind;
    this.description = description;
    if (target !== undefined) this.target = target;
    if (kind === 'sql') this.name = 'default';
  }
  /** Logical name of a database; `default` without it. */
  Name(name: string): this {
    this.name = name;
    return this;
  }
  /** Fields the administrator fills in. */
  WithConfig(fields: ConfigField[]): this {
    this.config = fields;
    return this;
  }
  Build(): this {
    return this;
  }
}

/** A PostgreSQL database, by its logical name: `ctx.Database`. */
export const Database = (description: string): Requirement => new Requirement('sql', description);
/** The key-value store: `ctx.KVGet` and its like. */
export const KV = (description: string): Requirement => new Requirement('kv', description);
/** Requests to other hosts: `ctx.HTTPGet`, `ctx.HTTPPost`, `ctx.HTTPRequest`. */
export const HTTP = (description: string): Requirement => new Requirement('network', description);
/** Messages to users, chats and students: `ctx.NotifyUser`, `ctx.NotifyChat`, `ctx.NotifyStudents`. */
export const NotifyReq = (description: string): Requirement => new Requirement('notify', description);
/** Events: `ctx.PublishEvent`. */
export const EventsReq = (description: string): Requirement => new Requirement('events', description);
/** Calls of another plugin: `ctx.CallPlugin`. */
export const PluginDep = (target: string, description: string): Requirement =>
  new Requirement('plugins:call', description, target);
/** Files: `ctx.FileMeta`, `ctx.FileRead`, `ctx.FileStore` and their like. */
export const File = (description: string): Requirement => new Requirement('file', description);

/** Who should call an HTTP trigger, as its author sees it. It counts when the administrator accepts it. */
export class Access {
  readonly public: boolean;
  readonly users: boolean;
  readonly service_keys: boolean;
  readonly reason: string;
  policy = '';

  constructor(reason: string, { open = false, users = false, keys = false }) {
    this.public = open;
    this.users = users;
    this.service_keys = keys;
    this.reason = reason;
  }
  /** A CEL expression that must be true as well; not for a public trigger. */
  Policy(expression: string): this {
    this.policy = expression;
    return this;
  }
}

/** Suggests that callers need no login. The reason is shown to the administrator. */
export const Public = (reason: string): Access => new Access(reason, { open: true });
/** Suggests that users may call. */
export const Users = (reason: string): Access => new Access(reason, { users: true });
/** Suggests that programs with a service key may call. */
export const ServiceKeys = (reason: string): Access => new Access(reason, { keys: true });
/** Suggests that users and programs with a service key may call. */
export const UsersAndServiceKeys = (reason: string): Access => new Access(reason, { users: true, keys: true });

/** Handles one event. What it throws ends the execution as failed. */
export type Handler = (ctx: Context) => void | Promise<void>;

/** Type of an HTTP trigger. */
export const TriggerHTTP = 'TriggerHTTP';
/** Type of a command of messengers. */
export const TriggerMessenger = 'TriggerMessenger';

export type HTTPMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';

/** An endpoint below `/api/triggers/http/<plugin id>`. */
export type HTTPTrigger = {
  /** Letters, digits, `_`, `.` and `-`; used in settings and in scopes of service keys. */
  Name: string;
  Type: typeof TriggerHTTP;
  Description?: string;
  /** Like `/profile` or `/items/:id`. */
  Path: string;
  Methods: HTTPMethod[];
  Access?: Access;
  Handler: Handler;
};

/** A command of messengers; its name is the word users write. */
export type MessengerTrigger = { Name: string; Type: typeof TriggerMessenger; Description?: string; Handler: Handler };

/** A plugin, for `definePlugin`. */
export type Plugin = {
  /** Lower-case letters, digits, `_` and `-`; used in addresses and in scopes. */
  ID: string;
  Name: string;
  Version: string;
  Requirements?: Requirement[];
  Triggers: Array<HTTPTrigger | MessengerTrigger>;
  /** Functions that other plugins may call which require this one (`PluginDep`). */
  Functions?: Record<string, Handler>;
  /** `once`: what the top level of the files drew at random or read from the clock may be shared by all executions. */
  Start?: 'once';
};

/** Protocol version of the functions this kit uses. */
const ABI = 5;

/** The manifest as the host reads it. */
export function manifestOf(plugin: Plugin): string {
  const { ID, Name, Requirements = [], Start, Triggers, Version } = plugin;
  const triggers = Triggers.map(t => ({
    name: t.Name,
    type: t.Type,
    description: t.Description,
    ...(t.Type === TriggerHTTP ? { path: t.Path, methods: t.Methods, access: t.Access } : {}),
  }));
  return JSON.stringify({
    abi: ABI,
    id: ID,
    name: Name,
    version: Version,
    requirements: Requirements,
    triggers,
    start: Start,
  });
}
