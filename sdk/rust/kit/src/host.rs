//! The functions of the host (docs/abi.md, "Host functions"), and how parked results are read.

use crate::error::{ErrorCode, HostError};

/// The raw functions. Text and bytes are a pointer and a length.
pub mod raw {
    #[link(wasm_import_module = "plugin_host")]
    extern "C" {
        pub fn input_len(kind: i32) -> i32;
        pub fn input_read(kind: i32, to: *mut u8, length: usize) -> i32;
        pub fn result_read(to: *mut u8, length: usize) -> i32;
        pub fn body_len() -> i32;
        pub fn body_read(from: i32, to: *mut u8, length: usize) -> i32;
        pub fn error_len() -> i32;
        pub fn error_read(to: *mut u8, length: usize) -> i32;
        pub fn output(at: *const u8, length: usize) -> i32;
        pub fn respond(status: i32, headers: *const u8, headers_length: usize, body: *const u8, length: usize) -> i32;
        pub fn reply(message: *const u8, length: usize) -> i32;
        pub fn fail(text: *const u8, length: usize) -> i32;
        pub fn log(level: i32, text: *const u8, length: usize) -> i32;
        pub fn config_get(name: *const u8, length: usize) -> i32;
        pub fn host_info() -> i32;
        pub fn kv_get(key: *const u8, length: usize) -> i32;
        pub fn kv_set(key: *const u8, length: usize, value: *const u8, value_length: usize, ttl_seconds: i32) -> i32;
        pub fn kv_delete(key: *const u8, length: usize) -> i32;
        pub fn kv_list(prefix: *const u8, length: usize, after: *const u8, after_length: usize, limit: i32) -> i32;
        pub fn kv_get_many(keys: *const u8, length: usize) -> i32;
        pub fn kv_update(
            key: *const u8,
            length: usize,
            mode: i32,
            expected: *const u8,
            expected_length: usize,
            value: *const u8,
            value_length: usize,
            ttl_seconds: i32,
        ) -> i32;
        pub fn kv_increment(key: *const u8, length: usize, delta: i64, ttl_seconds: i32) -> i32;
        pub fn sql_open(name: *const u8, length: usize) -> i32;
        pub fn sql_query(
            handle: i32,
            statement: *const u8,
            length: usize,
            values: *const u8,
            values_length: usize,
            rows_max: i32,
        ) -> i32;
        pub fn sql_fetch(cursor: i32, rows_max: i32) -> i32;
        pub fn sql_exec(
            handle: i32,
            statement: *const u8,
            length: usize,
            values: *const u8,
            values_length: usize,
        ) -> i32;
        pub fn sql_begin(handle: i32) -> i32;
        pub fn sql_commit(transaction: i32) -> i32;
        pub fn sql_rollback(transaction: i32) -> i32;
        pub fn sql_close(handle: i32) -> i32;
        pub fn http_request(order: *const u8, length: usize, body: *const u8, body_length: usize) -> i32;
        pub fn notify_user(id: i64, message: *const u8, length: usize) -> i32;
        pub fn notify_chat(id: *const u8, id_length: usize, message: *const u8, length: usize) -> i32;
        pub fn notify_students(filter: *const u8, filter_length: usize, message: *const u8, length: usize) -> i32;
        pub fn file_meta(id: *const u8, length: usize) -> i32;
        pub fn file_url(id: *const u8, length: usize) -> i32;
        pub fn file_store(order: *const u8, length: usize, data: *const u8, data_length: usize) -> i32;
        pub fn file_read_into(id: *const u8, length: usize, offset: i64, to: *mut u8, to_length: usize) -> i32;
        pub fn event_publish(name: *const u8, name_length: usize, payload: *const u8, length: usize) -> i32;
        pub fn plugin_call(
            target: *const u8,
            target_length: usize,
            name: *const u8,
            name_length: usize,
            data: *const u8,
            length: usize,
        ) -> i32;
    }

    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    extern "C" {
        pub fn random_get(to: *mut u8, length: usize) -> i32;
    }
}

/// Reads `length` bytes that `fill` writes; it is given where to, and how many, and says how many it wrote.
fn read(length: i32, fill: impl FnOnce(*mut u8, usize) -> i32) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    if !bytes.is_empty() {
        let written = fill(bytes.as_mut_ptr(), bytes.len());
        bytes.truncate(usize::try_from(written).unwrap_or(0));
    }
    bytes
}

/// A result below zero is an error.
pub fn check(result: i32) -> Result<i32, HostError> {
    if result >= 0 {
        return Ok(result);
    }
    let text = read(unsafe { raw::error_len() }, |to, length| unsafe { raw::error_read(to, length) });
    Err(HostError { code: ErrorCode::of(result), message: String::from_utf8_lossy(&text).into_owned() })
}

/// What the last call has parked; its result is the length.
pub fn parked(result: i32) -> Result<Vec<u8>, HostError> {
    let length = check(result)?;
    Ok(read(length, |to, length| unsafe { raw::result_read(to, length) }))
}

/// As text.
pub fn parked_text(result: i32) -> Result<String, HostError> {
    text_of(parked(result)?)
}

/// The raw part of the last result.
pub fn parked_body() -> Vec<u8> {
    read(unsafe { raw::body_len() }, |to, length| unsafe { raw::body_read(0, to, length) })
}

/// The event (kind 0) or the body (kind 1).
pub fn input(kind: i32) -> Vec<u8> {
    read(unsafe { raw::input_len(kind) }, |to, length| unsafe { raw::input_read(kind, to, length) })
}

/// The text that belongs to an execution that fails.
pub fn fail(text: &str) {
    unsafe { raw::fail(text.as_ptr(), text.len()) };
}

pub fn text_of(bytes: Vec<u8>) -> Result<String, HostError> {
    String::from_utf8(bytes).map_err(|e| HostError {
        code: ErrorCode::InvalidArgument,
        message: format!("it is not UTF-8 (byte {}); read it as bytes", e.utf8_error().valid_up_to()),
    })
}
