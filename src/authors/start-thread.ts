import fs from 'node:fs';
import { dumpStart } from '../../workers/dump-start.ts';
import type { StartOrder } from '../abi/start-report.ts';
import { messageOf } from '../base/errors.ts';

/** The thread of `plugin dev` that runs the start of a plugin: a process of its own would take longer than all else. */

export type StartTask = { start: string; image: string; order: StartOrder };

/** Writes what the start leaves into the file `image`. @returns null, or why the module does not compile */
export default function startInThread({ image, order, start }: StartTask): string | null {
  let module: WebAssembly.Module;
  try {
    module = new WebAssembly.Module(fs.readFileSync(start));
  } catch (error) {
    return messageOf(error);
  }
  fs.writeFileSync(image, Buffer.concat(dumpStart(module, order)));
  return null;
}
