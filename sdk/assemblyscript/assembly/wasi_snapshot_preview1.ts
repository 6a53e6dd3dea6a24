// Imports of WASI (docs/abi.md "WASI"), named by the name of this file. They return an error number, 0 for none.
export declare function clock_time_get(clock: i32, precision: i64, to: usize): i32;
export declare function random_get(to: usize, length: i32): i32;
