import { ENTRY } from '../abi/shared-layout.ts';
import { databaseRoutes } from '../api/databases-api.ts';
import { messageOf } from '../base/errors.ts';
import { PluginDatabases } from '../db/plugin-databases.ts';
import { callPluginHandlers } from '../host/call-plugin.ts';
import { nameResolver } from '../host/guarded-agent.ts';
import { OutgoingHttp } from '../host/outgoing-http.ts';
import { sqlHandlers } from '../host/sql.ts';
import type { SecretBox } from '../plugins/secret-box.ts';
import { appendCall } from '../triggers/record.ts';
import { composeEvents, type Events } from './events.ts';
import { composeMessengers, type Messengers, type MessengersParts } from './messengers.ts';

/** A plugin tries a database that is away as often as it is called. */
const WARNED_AGAIN_MS = 60_000;

export type PluginIoParts = MessengersParts & { secrets: SecretBox };
export type PluginIo = Messengers & Pick<Events, 'channels' | 'hear' | 'endStreams'>;

/** Builds what plugins reach beside their own: databases, the world outside, each other, people. */
export function composePluginIo(parts: PluginIoParts): PluginIo {
  const { config, db, log, records, registry } = parts;
  const messengers = composeMessengers(parts);
  const events = composeEvents(parts);
  const databases = new PluginDatabases();
  const warnedAt = new Map<string, number>();
  const outgoing = new OutgoingHttp(nameResolver(config.values['network.name_servers']));
  return {
    handlers: {
      ...messengers.handlers,
      ...events.handlers,
      ...sqlHandlers(databases, (plugin, database, error) => {
        const key = `${plugin}/${database}`;
        const now = performance.now();
        if (now - (warnedAt.get(key) ?? Number.NEGATIVE_INFINITY) < WARNED_AGAIN_MS) return;
        warnedAt.set(key, now);
        log.warn({ plugin, database, error: messageOf(error) }, 'the database of a plugin cannot be reached');
      }),
      ...outgoing.handlers(),
      ...callPluginHandlers({
        find: id => registry.find(id),
        execute: ({ plugin, ...execution }) =>
          parts.execute({ ...execution, pluginId: plugin.id, moduleId: plugin.moduleId, entry: ENTRY.call }),
        ended: (call, outcome) => appendCall(records, call, outcome, null, Date.now()),
      }),
    },
    jobs: [...messengers.jobs, ...events.jobs],
    routes: of => [...databaseRoutes({ db, registry }), ...messengers.routes(of), ...events.routes],
    channels: events.channels,
    hear: () => events.hear(),
    endStreams: () => events.endStreams(),
    start: () => messengers.start(),
    async close() {
      await messengers.close();
      await events.close();
      await databases.close();
      await outgoing.close();
    },
  };
}
