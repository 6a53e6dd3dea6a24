#!/bin/sh
# Builds the committed modules of other toolchains. Debian 12: apt-get install clang lld wasi-libc libclang-rt-14-dev-wasm32
# rustc libstd-rust-dev-wasm32
set -eu
cd "$(dirname "$0")"
clang --target=wasm32-wasi -O2 -mexec-model=reactor -Wl,--strip-all -o echo-c.wasm echo.c
"${RUSTC:-/usr/bin/rustc}" --target wasm32-wasi --crate-type cdylib -C opt-level=s -C panic=abort -C strip=symbols -C link-arg=--strip-all -o echo-rust.wasm echo.rs
ls -l ./*.wasm
