import { ENTRY } from '../abi/shared-layout.ts';
import { databaseRoutes } from '../api/plugins/databases-api.ts';
import { messageOf } from '../base/errors.ts';
import { Seldom } from '../base/seldom.ts';
import { PluginDatabases } from '../db/plugin-databases.ts';
import type { Execution } from '../execution/execute.ts';
import { callPluginHandlers } from '../host/call-plugin.ts';
import { nameResolver } from '../host/guarded-agent.ts';
import type { HostCall } from '../host/host-functions.ts';
import { kvHandlers } from '../host/kv.ts';
import { sweepExpired } from '../host/kv-writes.ts';
import { OutgoingHttp } from '../host/outgoing-http.ts';
import { sqlHandlers } from '../host/sql.ts';
import { appendCall } from '../triggers/record.ts';
import type { Core } from './core.ts';
import type { Feature } from './feature.ts';
import type { Plugins } from './plugins.ts';
import type { Records } from './records.ts';

const NOT_REACHED = 'the database of a plugin cannot be reached';

export type PluginIoParts = Pick<Plugins, 'registry'> &
  Pick<Records, 'records'> & { execute(execution: Execution<HostCall>): void };

/** What plugins reach: their values, databases, hosts on the network, each other. */
export function composePluginIo({ config, db, log }: Core, parts: PluginIoParts): Feature {
  const { execute, records, registry } = parts;
  const databases = new PluginDatabases();
  // A plugin tries a database that is away as often as it is called.
  const seldom = new Seldom();
  const outgoing = new OutgoingHttp(nameResolver(config.values['network.name_servers']));
  return {
    hostFunctions: {
      ...kvHandlers(db),
      ...sqlHandlers(databases, (plugin, database, error) => {
        const facts = { plugin, database, error: messageOf(error) };
        seldom.line(`${plugin}/${database}`, more => log.warn({ ...facts, ...more }, NOT_REACHED));
      }),
      ...outgoing.handlers(),
      ...callPluginHandlers({
        find: id => registry.find(id),
        execute: ({ plugin, ...execution }) =>
          execute({ ...execution, pluginId: plugin.id, moduleId: plugin.moduleId, entry: ENTRY.call }),
        ended: (call, outcome) => appendCall(records, call, outcome, null, Date.now()),
      }),
    },
    routes: databaseRoutes({ db, registry }),
    repeated: [{ everyMs: 30_000, what: 'removing expired values', run: () => sweepExpired(db) }],
    async close() {
      await databases.close();
      await outgoing.close();
    },
  };
}
