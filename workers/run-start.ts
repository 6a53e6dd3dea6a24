import fs from 'node:fs';
import { COMPILED_LINE, START_DESCRIPTORS, type StartOrder } from '../src/abi/start-report.ts';
import { dumpStart } from './dump-start.ts';

/**
 * The entry of a process of its own, which the host limits: compiles a module that runs only the start of a plugin,
 * runs it, and writes down what it leaves.
 */
function main(): void {
  const order = JSON.parse(process.argv[2] ?? '{}') as StartOrder;
  const uploaded = fs.readFileSync(START_DESCRIPTORS.uploaded);
  // Throws the compiler's reason, as for a module that is only compiled.
  if (!WebAssembly.validate(uploaded)) new WebAssembly.Module(uploaded);
  const module = new WebAssembly.Module(fs.readFileSync(0));
  fs.writeSync(1, COMPILED_LINE);
  for (const part of dumpStart(module, order)) writeAll(START_DESCRIPTORS.image, part);
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += fs.writeSync(fd, bytes, at);
}

main();
