/** The kit for plugins in TypeScript: `import { definePlugin, TriggerHTTP } from '@plugin-host/sdk'`. */
export { Context, HTTPRequest, PluginCall } from './context.ts';
export type { HTTPAuthInfo } from './event.ts';
export type { FileChunk, FileRef, FileType } from './files.ts';
export { HostError, type HostErrorCode } from './host.ts';
export { type HTTPOrder, HTTPResponse } from './http.ts';
export type { KeyPage, KVUpdate } from './kv.ts';
export {
  Access,
  ConfigField,
  ConfigFields,
  Database,
  EventsReq,
  File,
  type Handler,
  HTTP,
  type HTTPMethod,
  type HTTPTrigger,
  KV,
  type MessengerTrigger,
  NotifyReq,
  type Plugin,
  PluginDep,
  Public,
  Requirement,
  ServiceKeys,
  StringField,
  StringField as String,
  TriggerHTTP,
  TriggerMessenger,
  Users,
  UsersAndServiceKeys,
} from './manifest.ts';
export { IncomingMessage, Message, NewMessage, type StudentAttribute, StudentFilter, Students } from './messages.ts';
export { definePlugin } from './run.ts';
export { Connection, type Row, Rows, type SQLArgument, type SQLValue, Transaction } from './sql.ts';
