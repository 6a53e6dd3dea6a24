import { Feed, streamBlock } from '../base/feed.ts';
import type { Queryable } from '../db/database.ts';
import { cloudEvent, type StoredEvent } from './event.ts';
import { type EventFilter, eventIdsAfter, lastEventId, listEventsByIds } from './publish.ts';

/** Events as they are published, for administrators who watch. */
export type EventFeed = Feed<StoredEvent, EventFilter>;

export const eventFeed = (db: Queryable, onError: (error: unknown) => void): EventFeed =>
  new Feed(
    {
      lastId: () => lastEventId(db),
      idsAfter: (after, limit) => eventIdsAfter(db, after, limit),
      listByIds: ids => listEventsByIds(db, ids),
      wants: (f, e) =>
        (f.pluginId === undefined || f.pluginId === e.pluginId) && (f.type === undefined || f.type === e.type),
      written: e => streamBlock(e.id, e.type, cloudEvent(e)),
      lookedAtAgain: 100,
      everyMs: 5000,
    },
    onError,
  );
