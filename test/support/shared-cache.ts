import fs from 'node:fs';
import path from 'node:path';

/**
 * Lets a service find in its cache what every service makes for itself at its first start, and all make alike: the code of the lanes
 * without types, and what V8 compiled of the service.
 *
 * @param directory `data.dir` of the service
 */
export function shareCache(directory: string): void {
  const lanes = process.env.TEST_LANES;
  if (lanes === undefined) return;
  const cache = path.join(directory, 'cache');
  fs.mkdirSync(cache, { recursive: true });
  for (const name of fs.readdirSync(lanes)) link(path.join(lanes, name), path.join(cache, name));
  const compiled = process.env.TEST_COMPILED;
  if (compiled !== undefined) link(compiled, path.join(cache, 'compiled'));
}

function link(target: string, at: string): void {
  if (!fs.existsSync(at)) fs.symlinkSync(target, at);
}
