import { z } from 'zod';
import { metric } from '../../base/metric.ts';
import type { ConfigOrigin } from '../../config/load.ts';
import type { PendingConfig } from '../../config/pending-config.ts';
import { type BrokerMessage, leaseMessage } from '../../execution/slot-messages.ts';
import { type StrikeMessage, strikeMessage } from '../../records/strikes.ts';
import type { Suspect } from '../../records/suspects.ts';

/** Messages of a serving process to its supervisor, which trusts them no further than it has to. */
export const servingMessage = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('listening'), port: z.number().int(), setupMode: z.boolean() }),
  z.object({ kind: z.literal('failed'), message: z.string() }),
  /** The embedded graph store at this endpoint is in use now. */
  z.object({ kind: z.literal('graph_in_use'), endpoint: z.string() }),
  z.object({ kind: z.literal('metrics'), number: z.number(), metrics: z.array(metric) }),
  /** The answer to `supervisor_changes`; nothing follows it until `supervisor_changed`. */
  z.object({ kind: z.literal('quiet') }),
  /** The event loop of the process turns. */
  z.object({ kind: z.literal('alive') }),
  /** The process has changed something: have the others heard of it? */
  z.object({ kind: z.literal('ask_heard'), number: z.number() }),
  /** The process has heard everything that was changed before it was asked. */
  z.object({ kind: z.literal('heard'), by: z.number(), number: z.number() }),
  /** What would the next reload change? */
  z.object({ kind: z.literal('ask_config'), number: z.number() }),
  ...leaseMessage.options,
  ...strikeMessage.options,
]);
export type ServingMessage = z.infer<typeof servingMessage>;

/** Tells a standby to begin serving, with the effective configuration as environment. */
export type GoMessage = {
  kind: 'go';
  env: Record<string, string>;
  /** Where its values come from. */
  origin: ConfigOrigin;
  /** Names this host in the database, for all its serving processes. */
  hostId: number;
  /** Number of serving processes. */
  processes: number;
  /** Slots of every plugin it begins with, and of which plugins it has others. */
  slots: { own: number; except: Record<string, number> };
  noteFile: string;
  suspects: Suspect[];
  sampleModule: string | null;
  /** Directory of the built administration pages; null where they are not built. */
  pages: string | null;
  /** Another process serves meanwhile: it begins to listen when it is fast. */
  replaces?: boolean;
};

/** Messages of the supervisor to a serving process. */
export type SupervisorMessage =
  | GoMessage
  /** An embedded graph store is ready and empty. */
  | { kind: 'graph'; endpoint: string }
  /** Another program is about to take the supervisor's place: keep what you have to say. */
  | { kind: 'supervisor_changes' }
  /** The other program has taken the place, or the old one goes on: say what you kept. */
  | { kind: 'supervisor_changed' }
  | { kind: 'ask_metrics'; number: number }
  /** Answer at once, so that the supervisor sees that the event loop turns. */
  | { kind: 'ask_alive' }
  /** The other serving processes of this host. */
  | { kind: 'others'; pids: number[] }
  /** Another process has changed something: answer when you have heard of it. */
  | { kind: 'ask_heard'; by: number; number: number }
  /** All others have heard. */
  | { kind: 'heard'; number: number }
  | { kind: 'config'; number: number; pending: PendingConfig }
  /** It takes the place of another one: lead new connections to it, because its socket is the newest. */
  | { kind: 'take_over' }
  /** Another process has taken its place: take no new connections, answer those that are open, end. */
  | { kind: 'hand_over' }
  | BrokerMessage
  | StrikeMessage;
