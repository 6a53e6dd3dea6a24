import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import type { StoredEvent } from '../../events/event.ts';
import type { EventFeed } from '../../events/event-feed.ts';
import { type EventFilter, findEvent, listEvents } from '../../events/publish.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { id, time } from '../contract/fields.ts';
import { after, liveStream, STREAM_ABOUT } from '../contract/live-stream.ts';
import { loadPage, pageOf } from '../contract/paging.ts';
import { list as listWith, text } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';
import { type EventSubscriptionsParts, eventSubscriptionRoutes } from './event-subscriptions-api.ts';

export type EventsApiParts = EventSubscriptionsParts & { feed: EventFeed };

const eventReply = z
  .object({
    id: z.uuid(),
    number: id.describe('Numbers grow; the cursor of the list and of the stream'),
    plugin_id: z.string(),
    type: z.string(),
    request_id: z.string(),
    at: time,
    data: z.unknown().describe('JSON as the plugin published it; its numbers may be larger than those of JavaScript'),
  })
  .meta({ id: 'Event' });

const filters = { plugin: text('Only events of this plugin'), type: text('Only events of this type') };
/** Events of plugins: all of them, and as they come (docs/events.md). */
export const events = resource('Events', 'What plugins published, as a list and as it comes.', {
  list: {
    method: 'GET',
    path: '/api/admin/events',
    guard: 'admin',
    key: ['read', 'operate'],
    summary: 'List events',
    query: listWith(filters),
    replies: { 200: { media: 'application/json', description: 'Done', schema: pageOf(eventReply) } },
  },
  get: {
    method: 'GET',
    path: '/api/admin/events/:event',
    guard: 'admin',
    key: ['read', 'operate'],
    summary: 'Read an event',
    params: { event: z.uuid().describe('Id of the event, as subscribers get it') },
    replies: { 200: { media: 'application/json', description: 'Done', schema: eventReply } },
  },
  stream: {
    method: 'GET',
    path: '/api/admin/events/stream',
    guard: 'admin',
    key: ['read', 'operate'],
    summary: 'Watch events as they come',
    description: STREAM_ABOUT,
    query: z.strictObject({ ...filters, after }),
    replies: {
      200: {
        media: 'text/event-stream',
        description: 'Server-sent events: id is the number, event the type, data a CloudEvent 1.0 in JSON',
      },
    },
  },
});

const JSON_TYPE: [string, string] = ['Content-Type', 'application/json; charset=utf-8'];

const list: Handle<typeof events.list, EventsApiParts> = async ({ db }, { query }) => {
  const page = await loadPage(query, (before, limit) => listEvents(db, filterOf(query), before, limit), rawJson);
  const body = `{"items":[${page.items.join(',')}],"next_cursor":${JSON.stringify(page.next_cursor)}}`;
  return { status: 200, headers: [JSON_TYPE], body };
};

const get: Handle<typeof events.get, EventsApiParts> = async ({ db }, { params }) => {
  const found = await findEvent(db, params.event);
  if (found === undefined) throw new ServiceError('not_found', `there is no event ${params.event}`);
  return { status: 200, headers: [JSON_TYPE], body: rawJson(found) };
};

const stream: Handle<typeof events.stream, EventsApiParts> = ({ feed }, { isStillAllowed, query, request }) =>
  liveStream(feed, filterOf(query), request.headers['last-event-id'] ?? query.after, isStillAllowed);

/** Events for administrators: a list of them, and all of them as they come. */
export const eventRoutes = (parts: EventsApiParts): Route[] => [
  ...serve(events, parts, { list, get, stream }),
  ...eventSubscriptionRoutes(parts),
];

const filterOf = ({ plugin, type }: { plugin?: string | undefined; type?: string | undefined }): EventFilter => ({
  ...(plugin === undefined ? {} : { pluginId: plugin }),
  ...(type === undefined ? {} : { type }),
});

/** `data` as it was published, also where its numbers are larger than JavaScript's. */
const rawJson = (e: StoredEvent): string =>
  `${JSON.stringify({
    id: e.eventId,
    number: e.id,
    plugin_id: e.pluginId,
    type: e.type,
    request_id: e.requestId,
    at: e.at,
  }).slice(0, -1)},"data":${e.data}}`;
