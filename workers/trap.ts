/**
 * Ends the running guest with a trap raised inside a helper WebAssembly instance. The guest's `catch_all` would catch a
 * JavaScript exception and the guest would continue (docs/plugins.md "Sandbox"); it cannot catch a trap.
 */
const module = new WebAssembly.Module(
  // (module (func (export "t") unreachable))
  Uint8Array.of(
    0,
    97,
    115,
    109,
    1,
    0,
    0,
    0,
    1,
    4,
    1,
    96,
    0,
    0,
    3,
    2,
    1,
    0,
    7,
    5,
    1,
    1,
    116,
    0,
    0,
    10,
    5,
    1,
    3,
    0,
    0,
    11,
  ),
);
const raise = new WebAssembly.Instance(module).exports.t;

export function trap(): never {
  if (typeof raise === 'function') raise();
  throw new Error('the helper trap returned');
}
