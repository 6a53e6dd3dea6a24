// Kit for plugins in AssemblyScript (sdk/assemblyscript/README.md).
export { fromBase64, toBase64 } from "./base64";
export { Context, HTTPRequest, PluginCall } from "./context";
export { FileChunk, FileReader, FileRef } from "./files";
export { HTTPResponse } from "./http";
export { HTTPAuthInfo } from "./input";
export { arr, Bytes, Json, JSONValue, Kind, List, list, Obj, obj, quote, strings } from "./json";
export { KeyPage, KVUpdate } from "./kv";
export {
  Access, ConfigField, ConfigFields, Database, EventsReq, File, Handler, HTTP, KV, NotifyReq, Plugin, PluginDefinition, PluginDep,
  Public, Requirement, ServiceKeys, StringField, Users, UsersAndServiceKeys,
} from "./manifest";
export { IncomingMessage, Message, NewMessage, Queued, StudentFilter, Students } from "./messages";
export { Result } from "./result";
export { Args, args, Connection, Row, Rows, Statements, Transaction } from "./sql";
