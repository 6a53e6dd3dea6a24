import type { Route } from '../api/contract/route.ts';
import type { Attention } from '../api/operation/attention-api.ts';
import { messageOf } from '../base/errors.ts';
import type { Metric } from '../base/metric.ts';
import type { HostHandler } from '../host/host-functions.ts';
import type { JobQueue } from '../jobs.ts';

/** Work that is repeated at an interval while the service runs. */
export type Repeated = { everyMs: number; what: string; run(): Promise<unknown> };

/**
 * What a feature brings to the service, and how it begins and ends. Features begin in the order they are built and end in the
 * opposite one, so that each still has what it was built from.
 */
export type Feature = {
  /** Rows of the API. */
  routes?: readonly Route[];
  hostFunctions?: Record<string, HostHandler>;
  jobs?: ReadonlyArray<JobQueue<object>>;
  /** Notifications of the database it acts on, by channel. A promise settles when this host acts on the change. */
  channels?: Record<string, (payload: string) => void | Promise<void>>;
  /** Notifications may have been missed: reads everything again that it remembers. */
  readAll?(): unknown;
  repeated?: readonly Repeated[];
  /** What it counts and measures, for `metrics.port`. */
  metrics?(): readonly Metric[] | Promise<readonly Metric[]>;
  /** Its things that wait for an administrator. */
  attention?(): Promise<readonly Attention[]>;
  /** Work that one host at a time does, and this process does now. */
  duties?(): readonly string[];
  /** Begins its own work; the service answers requests. */
  start?(): void;
  /** The service says that it is about to end, and goes on for a while. */
  leave?(): void;
  /** The service is about to end: ends answers that would go on for long. */
  drain?(): void;
  close?(): void | Promise<void>;
};

/** One callback for all notifications, as the change listener wants it. */
export function listenersOf(features: readonly Feature[]): {
  channels: string[];
  apply(channel: string, payload: string): Promise<void>;
  readAll(): Promise<void>;
} {
  return {
    channels: [...new Set(features.flatMap(f => Object.keys(f.channels ?? {})))],
    async apply(channel, payload) {
      await Promise.all(features.map(f => f.channels?.[channel]?.(payload)));
    },
    async readAll() {
      await Promise.all(features.map(f => f.readAll?.()));
    },
  };
}

/** A part that cannot be asked right now is one more thing to look at. */
const unknownNow = (error: unknown): Attention[] => [
  { kind: 'check_failed', severity: 'bad', plugin: null, count: 1, detail: messageOf(error), since: null },
];

/** Collects from all features the things that wait for an administrator. */
export const attentionOf = async (features: readonly Feature[]): Promise<Attention[]> =>
  (await Promise.all(features.map(f => f.attention?.().catch(unknownNow) ?? []))).flat();
