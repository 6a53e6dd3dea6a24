/** Tests of a plugin against its built module: `import { testHost } from '@plugin-host/sdk/test'`, run by `plugin test`. */

/** What policies see of the user of a call; what is left out is empty. */
export type TestAccess = {
  roles?: string[];
  /** Study groups the user is a member of. */
  groups?: string[];
  /** What the relationship graph gives, like `admin faculty:physics`: a permission or relation, and an object. */
  permissions?: string[];
  external_id?: string;
  locale?: 'ru' | 'en';
  primary_channel?: string;
  nationality_type?: string;
  funding_type?: string;
  education_form?: string;
};

/** Who a test calls as, and what the plugin has. Calls at the same time (`Promise.all`) go on together from host call to host call. */
export type CallOptions = {
  /** The call is that of this user. */
  user?: number | bigint;
  /** The call is that of a program with this service key. */
  serviceKey?: number | bigint;
  headers?: Record<string, string>;
  /** Text, bytes, or a value that is sent as JSON. */
  body?: unknown;
  /**
   * The access that the plugin suggests decides first, for a user who has this: `{ user: 7, access: { roles: ['teacher'] } }`.
   * Without it every call of an HTTP trigger is let in.
   */
  access?: TestAccess;
  /** Key-value data, set before the call; what was there stays. */
  kv?: Record<string, string | Uint8Array>;
  /** Permissions the administrator has granted, like `kv`; all the plugin requires without it. */
  grant?: readonly string[];
};

export type OutgoingRequest = { method: string; url: string; headers: Record<string, string>; body: Uint8Array };
export type OutgoingAnswer = { status?: number; headers?: Record<string, string>; body?: string | Uint8Array };

export type HostOptions = {
  /** Folder of the plugin; the present one without it. */
  folder?: string;
  /** Values of its configuration. */
  config?: Record<string, string>;
  /** Longest time of an execution; 5000 without it. */
  timeoutMs?: number;
  /** Answers requests to other hosts; without it none can be reached. */
  http?: (request: OutgoingRequest) => OutgoingAnswer | Promise<OutgoingAnswer>;
  /** Functions of other plugins, by plugin and name; they get and give JSON values. */
  plugins?: Record<string, Record<string, (value: unknown) => unknown>>;
};

/** JSON of the plugin. */
// biome-ignore lint/suspicious/noExplicitAny: the plugin says what it is.
type PluginJSON = any;

/** How an execution ended, and what it said. */
export type Ended = {
  /** `ok`, `handler_error`, `trapped`, `deadline` ... */
  outcome: string;
  /** Why it failed, with your files and lines; empty when it did not. */
  failure: string;
  logs: Array<{ level: 'debug' | 'info' | 'warn' | 'error'; text: string }>;
  runMs: number;
};

export type HTTPAnswer = Ended & {
  status: number;
  /** By names in lower case. */
  headers: Record<string, string>;
  text: string;
  bytes: Uint8Array;
  /** The body as JSON; null when it is none. Reading that of an execution that failed throws why it failed. */
  json: PluginJSON;
};

export type TestFile = {
  id: string;
  name: string;
  mime_type: string;
  file_type: string;
  bytes: Uint8Array;
  /** Who has uploaded it: only HTTP requests of this user read it. Without it, it is the plugin's own. */
  user?: number | bigint | null;
};
export type TestMessage = { text: string; files: Array<{ file: { id: string; name: string }; caption?: string }> };

/** A plugin in the sandbox of the service, and what it stores and sends. Data stay from call to call. */
export type TestHost = {
  readonly kv: Map<string, Uint8Array>;
  /** The text of a key; null when it is absent. */
  kvText(key: string): string | null;
  readonly files: Map<string, TestFile>;
  readonly requests: OutgoingRequest[];
  readonly notifications: Array<{ to: unknown; message: TestMessage }>;
  readonly events: Array<{ name: string; payload: unknown }>;
  /** Adds a file the plugin may read. @returns its id */
  addFile(name: string, content: string | Uint8Array, more?: Partial<TestFile>): string;
  /** Calls an HTTP trigger: `host.http('GET /greet?name=Ada', { user: 7 })`. */
  http(request: string, options?: CallOptions): Promise<HTTPAnswer>;
  /** Sends a command: `host.message('/menu tomorrow')`. `files` are ids of files of the test. */
  message(
    text: string,
    options?: CallOptions & { files?: readonly string[] },
  ): Promise<Ended & { replies: TestMessage[] }>;
  /** Calls a function as another plugin would. Reading the `value` of a call that failed throws why it failed. */
  call(
    name: string,
    value?: unknown,
    options?: CallOptions & { from?: string },
  ): Promise<Ended & { bytes: Uint8Array; value: PluginJSON }>;
  close(): Promise<void>;
};

/** Builds the plugin and puts it into the sandbox. */
export function testHost(options?: HostOptions): Promise<TestHost>;
