// Imports of protocol version 4 (docs/ABI.md). Pairs are (pointer, length); a negative result is an error whose text
// `error_read` gives.
@external("plugin_host", "input_len") export declare function input_len(kind: i32): i32;
@external("plugin_host", "input_read") export declare function input_read(kind: i32, ptr: usize, len: i32): i32;
@external("plugin_host", "result_read") export declare function result_read(ptr: usize, len: i32): i32;
@external("plugin_host", "error_len") export declare function error_len(): i32;
@external("plugin_host", "error_read") export declare function error_read(ptr: usize, len: i32): i32;
@external("plugin_host", "output") export declare function output(ptr: usize, len: i32): i32;
@external("plugin_host", "respond") export declare function respond(status: i32, hp: usize, hl: i32, bp: usize, bl: i32): i32;
@external("plugin_host", "fail") export declare function fail(ptr: usize, len: i32): i32;
@external("plugin_host", "log") export declare function log(level: i32, ptr: usize, len: i32): i32;
@external("plugin_host", "config_get") export declare function config_get(ptr: usize, len: i32): i32;
@external("plugin_host", "kv_get") export declare function kv_get(kp: usize, kl: i32): i32;
@external("plugin_host", "kv_set") export declare function kv_set(kp: usize, kl: i32, vp: usize, vl: i32, ttl: i32): i32;
@external("plugin_host", "kv_delete") export declare function kv_delete(kp: usize, kl: i32): i32;
@external("plugin_host", "kv_list") export declare function kv_list(pp: usize, pl: i32, ap: usize, al: i32, limit: i32): i32;
@external("plugin_host", "file_meta") export declare function file_meta(ip: usize, il: i32): i32;
@external("plugin_host", "file_url") export declare function file_url(ip: usize, il: i32): i32;
@external("plugin_host", "file_store") export declare function file_store(jp: usize, jl: i32, bp: usize, bl: i32): i32;
@external("plugin_host", "file_read_into") export declare function file_read_into(ip: usize, il: i32, offset: i64, bp: usize, bl: i32): i32;
