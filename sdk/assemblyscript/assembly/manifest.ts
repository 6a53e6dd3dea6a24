import { Context } from "./context";
import { arr, obj, quote } from "./json";

// What a plugin declares (docs/plugins.md "Manifest").

/** Version of the functions this kit uses (docs/abi.md). */
const ABI = 5;

/** A field of the configuration, which the administrator fills in; made by `StringField`. */
export class ConfigField {
  private required: bool = false;
  private sensitive: bool = false;
  constructor(private name: string, private description: string) {}
  /** The plugin cannot be installed without it. */
  Required(): ConfigField {
    this.required = true;
    return this;
  }
  /** A secret: stored encrypted and never shown again. */
  Sensitive(): ConfigField {
    this.sensitive = true;
    return this;
  }
  toJSON(): string {
    return obj().str("type", "string").str("name", this.name).str("description", this.description)
      .bool("required", this.required).bool("sensitive", this.sensitive).toString();
  }
}

/** A text, which a handler reads with `ctx.Config(name)`. (The language keeps the name `String`.) */
export function StringField(name: string, description: string): ConfigField {
  return new ConfigField(name, description);
}

/** The fields of `WithConfig`. */
export function ConfigFields(fields: ConfigField[]): ConfigField[] {
  return fields;
}

/** Something a plugin asks its host for; made by `KV`, `Database` and their like. */
export class Requirement {
  private name: string = "";
  private fields: ConfigField[] = [];
  constructor(private kind: string, private description: string, private target: string = "") {}
  /** The logical name of a database; `default` without it. */
  Name(name: string): Requirement {
    this.name = name;
    return this;
  }
  /** Fields the administrator fills in. */
  WithConfig(fields: ConfigField[]): Requirement {
    this.fields = fields;
    return this;
  }
  /** Finishes the requirement. */
  Build(): Requirement {
    return this;
  }
  toJSON(): string {
    const o = obj().str("kind", this.kind).str("description", this.description);
    if (this.kind == "sql") o.str("name", this.name.length ? this.name : "default");
    if (this.target.length) o.str("target", this.target);
    const parts: string[] = [];
    for (let i = 0; i < this.fields.length; i++) parts.push(this.fields[i].toJSON());
    return o.raw("config", arr(parts)).toString();
  }
}

/** A PostgreSQL database: `ctx.Database`. */
export function Database(description: string): Requirement {
  return new Requirement("sql", description);
}
/** The key-value store: `ctx.KVGet` and its like. */
export function KV(description: string): Requirement {
  return new Requirement("kv", description);
}
/** Requests to other hosts: `ctx.HTTPGet`, `ctx.HTTPPost`, `ctx.HTTPRequest`. */
export function HTTP(description: string): Requirement {
  return new Requirement("network", description);
}
/** Messages to users, chats and students: `ctx.NotifyUser` and its like. */
export function NotifyReq(description: string): Requirement {
  return new Requirement("notify", description);
}
/** Events: `ctx.PublishEvent`. */
export function EventsReq(description: string): Requirement {
  return new Requirement("events", description);
}
/** Calls of another plugin: `ctx.CallPlugin`. */
export function PluginDep(target: string, description: string): Requirement {
  return new Requirement("plugins:call", description, target);
}
/** Files: `ctx.FileMeta`, `ctx.FileRead`, `ctx.FileStore` and their like. */
export function File(description: string): Requirement {
  return new Requirement("file", description);
}

/** Handles one event. */
export type Handler = (ctx: Context) => void;

/** Who should call an HTTP trigger, as its author sees it. It counts when the administrator accepts it. */
export class Access {
  private policy: string = "";
  constructor(private open: bool, private users: bool, private keys: bool, private reason: string) {}
  /** A CEL expression that must be true as well; not for a public trigger. */
  Policy(expression: string): Access {
    this.policy = expression;
    return this;
  }
  toJSON(): string {
    return obj().bool("users", this.users).bool("service_keys", this.keys).str("policy", this.policy)
      .bool("public", this.open).str("reason", this.reason).toString();
  }
}

/** Suggests that anyone may call, without a login. The reason is shown to the administrator. */
export function Public(reason: string): Access {
  return new Access(true, false, false, reason);
}
/** Suggests that users may call. */
export function Users(reason: string): Access {
  return new Access(false, true, false, reason);
}
/** Suggests that programs with a service key may call. */
export function ServiceKeys(reason: string): Access {
  return new Access(false, false, true, reason);
}
/** Suggests that users and programs with a service key may call. */
export function UsersAndServiceKeys(reason: string): Access {
  return new Access(false, true, true, reason);
}

class Trigger {
  access: Access | null = null;
  constructor(public type: string, public name: string, public path: string, public methods: string[], public handler: Handler, public description: string) {}
  toJSON(): string {
    const o = obj().str("name", this.name).str("type", this.type).str("description", this.description);
    if (this.type == "messenger") return o.toString();
    const methods: string[] = [];
    for (let i = 0; i < this.methods.length; i++) methods.push(quote(this.methods[i]));
    o.str("path", this.path).raw("methods", arr(methods));
    const access = this.access;
    if (access !== null) o.raw("access", access.toJSON());
    return o.toString();
  }
}

class CallFunction {
  constructor(public name: string, public handler: Handler) {}
}

/** What a plugin declares about itself; made by `Plugin`. */
export class PluginDefinition {
  id: string = "";
  title: string = "";
  version: string = "";
  start: string = "";
  requirements: Requirement[] = [];
  triggers: Trigger[] = [];
  functions: CallFunction[] = [];
  /** Asks the host for something. */
  Requires(requirement: Requirement): PluginDefinition {
    this.requirements.push(requirement);
    return this;
  }
  /** A function other plugins may call that require this one (`PluginDep`). */
  Function(name: string, handler: Handler): PluginDefinition {
    this.functions.push(new CallFunction(name, handler));
    return this;
  }
  /** An endpoint below `/api/triggers/http/<plugin id>`; `:name` in the path is what `ctx.HTTP.Param("name")` gives. */
  HTTP(name: string, path: string, methods: string[], handler: Handler, description: string = ""): PluginDefinition {
    this.triggers.push(new Trigger("http", name, path, methods, handler, description));
    return this;
  }
  /** Suggests who may call the HTTP trigger declared just before: `Public`, `Users`, `ServiceKeys`, `UsersAndServiceKeys`. */
  Access(access: Access): PluginDefinition {
    const last = this.triggers.length - 1;
    if (last < 0 || this.triggers[last].type != "http") throw new Error("Access(...) follows HTTP(...)");
    this.triggers[last].access = access;
    return this;
  }
  /** `once`: what the top level leaves in memory counts for all executions, whatever it has drawn (docs/plugins.md "Start"). */
  Start(how: string): PluginDefinition {
    this.start = how;
    return this;
  }
  /** A command of messengers; its name is the command word. */
  Messenger(name: string, handler: Handler, description: string = ""): PluginDefinition {
    this.triggers.push(new Trigger("messenger", name, "", [], handler, description));
    return this;
  }
  toJSON(): string {
    const requirements: string[] = [];
    for (let i = 0; i < this.requirements.length; i++) requirements.push(this.requirements[i].toJSON());
    const triggers: string[] = [];
    for (let i = 0; i < this.triggers.length; i++) triggers.push(this.triggers[i].toJSON());
    const o = obj().num("abi", ABI).str("id", this.id).str("name", this.title).str("version", this.version)
      .raw("requirements", arr(requirements)).raw("triggers", arr(triggers));
    return (this.start.length ? o.str("start", this.start) : o).toString();
  }
}

export const definition = new PluginDefinition();

/** Declares the plugin; called once at the top of the entry file, below the values it needs. */
export function Plugin(id: string, name: string, version: string): PluginDefinition {
  definition.id = id;
  definition.title = name;
  definition.version = version;
  return definition;
}
