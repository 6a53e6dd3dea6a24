// Echo: logs through println!, answers the request body. Built by build.sh. No plugin.manifest section: the host asks
// plugin_describe.
#[link(wasm_import_module = "plugin_host")]
extern "C" {
    fn input_len(kind: i32) -> i32;
    fn input_read(kind: i32, p: *mut u8, n: usize) -> i32;
    fn output(p: *const u8, n: usize) -> i32;
    fn respond(status: i32, h: *const u8, hn: usize, b: *const u8, bn: usize) -> i32;
}
const MANIFEST: &str = r#"{"abi":4,"id":"rust_echo","name":"Echo in rust","version":"1.0.0","requirements":[],"triggers":[{"name":"echo","type":"http","path":"/echo","methods":["POST"]}]}"#;
#[no_mangle]
pub extern "C" fn plugin_describe() -> i32 {
    unsafe { output(MANIFEST.as_ptr(), MANIFEST.len()) }
}
#[no_mangle]
pub extern "C" fn plugin_handle() -> i32 {
    let n = unsafe { input_len(1) } as usize;
    let mut b = vec![0u8; n];
    unsafe { input_read(1, b.as_mut_ptr(), n) };
    println!("echo of {n} bytes");
    let h = r#"{"X-Lang":"rust"}"#;
    unsafe { respond(200, h.as_ptr(), h.len(), b.as_ptr(), b.len()) }
}
