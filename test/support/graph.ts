import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { GraphStore } from '../../src/graph/graph-store.ts';
import type { Tuple } from '../../src/graph/tuple.ts';
import { type RunningSpicedb, startEmbeddedSpicedb } from '../../src/supervisor/stores/embedded-spicedb.ts';
import { BARE_ENV } from './bare-env.ts';

type Teardown = { teardown(fn: () => unknown): void };

/** `faculty:f1#dean@user:e1` as a tuple. */
export function tuple(text: string): Tuple {
  const [, resourceType = '', resourceId = '', relation = '', subjectType = '', subjectId = ''] =
    /^(\w+):([^#]+)#(\w+)@(\w+):(.+)$/.exec(text) ?? [];
  return { resourceType, resourceId, relation, subjectType, subjectId, subjectRelation: '' };
}

/** An embedded graph store of the test's own, empty; ends with the test. */
export async function startGraphStore(t: Teardown): Promise<{
  spicedb: RunningSpicedb;
  store: GraphStore;
  directory: string;
  /** Another client of the same store. */
  connect(): GraphStore;
}> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'g-'));
  const spicedb = await startEmbeddedSpicedb(path.join(directory, 'run'), null, BARE_ENV);
  const stores: GraphStore[] = [];
  const connect = (): GraphStore => {
    const store = new GraphStore({ endpoint: spicedb.endpoint, token: 'any', tls: false });
    stores.push(store);
    return store;
  };
  t.teardown(async () => {
    for (const store of stores) store.close();
    await spicedb.stop();
    fs.rmSync(directory, { recursive: true, force: true });
  });
  return { spicedb, directory, store: connect(), connect };
}

/** Numbers from 0 to 1 that follow from a seed (mulberry32). */
export function random(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let x = Math.imul(a ^ (a >>> 15), a | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  };
}
