/** An event of a plugin as it is stored, and as subscribers get it (docs/events.md). */
export type StoredEvent = {
  id: number;
  eventId: string;
  pluginId: string;
  type: string;
  /** JSON as it was published. */
  data: string;
  requestId: string;
  /** The trace it was published in, as the header names it; empty for none. */
  traceparent: string;
  at: Date;
};

/**
 * The event as subscribers get it (CloudEvents 1.0.2, JSON format, with the extension Distributed Tracing); `data` stands in it as it was published.
 */
export function cloudEvent(e: StoredEvent): string {
  const head = JSON.stringify({
    specversion: '1.0',
    id: e.eventId,
    source: `/plugins/${e.pluginId}`,
    type: e.type,
    time: e.at.toISOString(),
    datacontenttype: 'application/json',
    ...(e.traceparent === '' ? {} : { traceparent: e.traceparent }),
  });
  return `${head.slice(0, -1)},"data":${e.data}}`;
}

/** An event that no plugin has published: shows that a subscriber takes events and can check their signature. */
export const testEvent = (eventId: string, at: Date): string =>
  JSON.stringify({
    specversion: '1.0',
    id: eventId,
    source: '/',
    type: 'plugin_host.test',
    time: at.toISOString(),
    datacontenttype: 'application/json',
    data: {},
  });
