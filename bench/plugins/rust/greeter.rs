//! The greeter of the benchmark in Rust: JSON in, JSON out, without a crate.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

mod plugin_host {
    #[link(wasm_import_module = "plugin_host")]
    extern "C" {
        pub fn input_len(kind: i32) -> i32;
        pub fn input_read(kind: i32, to: *mut u8, length: usize) -> i32;
        pub fn result_read(to: *mut u8, length: usize) -> i32;
        pub fn respond(status: i32, headers: *const u8, headers_length: usize, body: *const u8, length: usize) -> i32;
        pub fn kv_get(key: *const u8, length: usize) -> i32;
        pub fn kv_set(key: *const u8, length: usize, value: *const u8, value_length: usize, ttl_seconds: i32) -> i32;
    }
}

const HEADERS: &str = r#"{"Content-Type":"application/json"}"#;

fn input() -> String {
    unsafe {
        let mut bytes = vec![0u8; plugin_host::input_len(0) as usize];
        plugin_host::input_read(0, bytes.as_mut_ptr(), bytes.len());
        String::from_utf8_unchecked(bytes)
    }
}

/// The text after `"key":"`, up to the next quote.
fn field<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let start = json.find(&format!("\"{key}\":\""))? + key.len() + 4;
    Some(&json[start..start + json[start..].find('"')?])
}

fn visit(name: &str) -> i64 {
    let key = format!("visits:{name}");
    unsafe {
        let length = plugin_host::kv_get(key.as_ptr(), key.len());
        let mut value = vec![0u8; length.max(0) as usize];
        plugin_host::result_read(value.as_mut_ptr(), value.len());
        let visits = String::from_utf8_lossy(&value).parse::<i64>().unwrap_or(0) + 1;
        let text = visits.to_string();
        match plugin_host::kv_set(key.as_ptr(), key.len(), text.as_ptr(), text.len(), 0) {
            0 => visits,
            code => code as i64,
        }
    }
}

#[no_mangle]
pub extern "C" fn plugin_handle() -> i32 {
    let event = input();
    let name = field(&event, "name").unwrap_or("world");
    let body = match field(&event, "trigger") {
        Some("visit") => format!(r#"{{"message":"Hello, {name}!","visits":{}}}"#, visit(name)),
        Some("draw") => {
            let number = || RandomState::new().hash_one(0) >> 11;
            format!(r#"{{"message":"Hello, {name}!","numbers":[{},{}]}}"#, number(), number())
        }
        _ => format!(r#"{{"message":"Hello, {name}!"}}"#),
    };
    unsafe { plugin_host::respond(200, HEADERS.as_ptr(), HEADERS.len(), body.as_ptr(), body.len()) }
}
