/**
 * The functions of the host as the engine gives them to the kit (docs/abi.md "Host functions"). The build writes the
 * module behind this declaration. A host function answers what it answers in docs/abi.md; text and bytes are one
 * argument each.
 */

/** What is passed as text or bytes. */
type Content = string | Uint8Array;

export function entries(
  onEvent: () => void,
  onIdle: () => number,
  onDescribe: () => void,
  onRejection: (promise: Promise<unknown>, reason: unknown, isHandled: boolean) => void,
  onInterrupt: (error: unknown) => void,
): void;
export function input_text(kind: number): string | undefined;
export function input_bytes(kind: number): Uint8Array | undefined;
export function result_text(length: number): string;
export function result_bytes(length: number): Uint8Array;
export function body_text(): string;
export function body_bytes(): Uint8Array;
export function error_text(): string;
export function utf8_bytes(text: string): Uint8Array;
export function utf8_text(bytes: Uint8Array): string;
export function random(): number;
export function random_bytes(into: Uint8Array): void;
export function sleep(milliseconds: number): void;
export function positions(): string;
/** How long the execution may take, in ms: code that runs on is interrupted shortly before. */
export function deadline(milliseconds: number): void;

export function output(bytes: Content): number;
export function respond(status: number, headers: string, body: Content): number;
export function reply(message: string): number;
export function fail(text: string): number;
export function log(level: number, text: string): number;
export function config_get(key: string): number;
export function host_info(): number;
export function kv_get(key: string): number;
export function kv_set(key: string, value: Content, ttlSeconds: number): number;
export function kv_delete(key: string): number;
export function kv_list(prefix: string, after: string, limit: number): number;
export function kv_get_many(keys: string): number;
export function kv_update(key: string, mode: number, expected: Content, value: Content, ttlSeconds: number): number;
export function kv_increment(key: string, delta: bigint, ttlSeconds: number): number;
export function sql_open(name: string): number;
export function sql_query(handle: number, statement: string, values: string, rowsMax: number): number;
export function sql_fetch(cursor: number, rowsMax: number): number;
export function sql_exec(handle: number, statement: string, values: string): number;
export function sql_begin(handle: number): number;
export function sql_commit(transaction: number): number;
export function sql_rollback(transaction: number): number;
export function sql_close(handle: number): number;
export function http_request(order: string, body: Content): number;
export function notify_user(id: bigint, message: string): number;
export function notify_chat(id: string, message: string): number;
export function notify_students(filter: string, message: string): number;
export function file_meta(id: string): number;
export function file_url(id: string): number;
export function file_store(order: string, bytes: Content): number;
export function file_read_into(id: string, offset: bigint, into: Uint8Array): number;
export function event_publish(name: string, payload: string): number;
export function plugin_call(target: string, name: string, bytes: Content): number;
