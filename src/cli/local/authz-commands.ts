import fs from 'node:fs';
import { type Config, dataPath } from '../../config/load.ts';
import { type GraphSchema, readGraphSchema } from '../../graph/graph-schema.ts';
import { GraphError, GraphStore } from '../../graph/graph-store.ts';
import { remoteStore } from '../../graph/remote-store.ts';
import { tupleText } from '../../graph/tuple.ts';
import { Deliverer } from '../../outbox/deliver.ts';
import { type Drift, findDrift, repairDrift } from '../../outbox/drift.ts';
import { endpointFile } from '../../supervisor/stores/spicedb-keeper.ts';
import { jsonText } from '../print/json-text.ts';
import { actor, CommandError, withDatabase } from './admin-commands.ts';

/** The store the service uses; the embedded one has a place of its own as long as the service runs. */
function storeOf(config: Config): GraphStore {
  const remote = remoteStore(config);
  if (remote !== null) return remote;
  const file = endpointFile(dataPath(config));
  // Throws when this account may not look.
  if (fs.statSync(file, { throwIfNoEntry: false }) === undefined)
    throw new CommandError(
      'the embedded graph store lives as long as the service runs, which it does not: start it first, or name another store with spicedb.endpoint (BOT_SPICEDB_ENDPOINT)',
    );
  return new GraphStore({ endpoint: fs.readFileSync(file, 'utf8').trim(), token: 'embedded', tls: false });
}

function shown(d: Drift): string {
  const count = d.missing.length + d.extra.length;
  return [
    ...d.missing.map(t => `missing in the store: ${tupleText(t)}`),
    ...d.extra.map(t => `too many in the store: ${tupleText(t)}`),
    `${d.compared} relationships compared, ${count} differ${d.repaired ? ' and were mended' : ''}${d.pending > 0 ? `, ${d.pending} more wait for delivery` : ''}`,
  ].join('\n');
}

const drift = (d: Drift): string =>
  jsonText({
    missing: d.missing.map(tupleText),
    extra: d.extra.map(tupleText),
    compared: d.compared,
    pending: d.pending,
    repaired: d.repaired,
  });

/**
 * `authz drift`: what the graph store and the database do not have in common.
 *
 * @param options `repair` mends the store
 * @returns what to print
 * @throws CommandError in words for the operator
 */
export async function authzDrift(
  config: Config,
  options: { repair: boolean; json: boolean },
  progress: (text: string) => void,
): Promise<string> {
  const store = storeOf(config);
  const schema: GraphSchema = readGraphSchema();
  try {
    return await withDatabase(config, progress, async db => {
      const parts = { db, deliverer: new Deliverer(db, schema), schema };
      const found = options.repair ? await repairDrift(parts, store, actor()) : await findDrift(parts, store);
      return options.json ? drift(found) : shown(found);
    });
  } catch (error) {
    if (error instanceof GraphError)
      throw new CommandError(`the graph store does not answer: ${error.message}`, { cause: error });
    throw error;
  } finally {
    store.close();
  }
}
