import { z } from 'zod';
import { ENTITIES, type EntityType } from '../../university/entities.ts';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { time } from '../contract/fields.ts';
import { noParameters } from '../contract/query.ts';
import type { Route } from '../contract/route.ts';

const KINDS = [
  'suspended',
  'outbox_dead',
  'outbox_late',
  'graph_differs',
  'events_undelivered',
  'mails_unsent',
  'host_silent',
  'config_wrong',
  'config_changed',
  'check_failed',
  'import_stopped',
  'import_broken',
  'import_failed',
  'messages_uncertain',
  'messages_failed',
] as const;

/** Something that an administrator should look at. */
export type Attention = {
  kind: (typeof KINDS)[number];
  /** `bad`: something does not work; `warn`: it works late or in part. */
  severity: 'bad' | 'warn';
  count: number;
  /** The only plugin it is about; null for several, or none. */
  plugin: string | null;
  /** The check that failed, as `/readyz` names it; only in entries of the kind `check_failed`. */
  check?: string;
  /** The import whose records did not get in, and the type of a list that was sent. */
  import?: number;
  type?: EntityType | undefined;
  /** Description in words; null where the kind says all. */
  detail: string | null;
  /** Since when; null where that is not known. */
  since: Date | null;
};

export type AttentionParts = {
  /** Asks every part of the service. */
  look(): Promise<readonly Attention[]>;
};

/** What waits for an administrator, in one answer (docs/administrators.md "What is going on"). */
export const attention = resource('Attention', 'What waits for an administrator.', {
  list: {
    method: 'GET',
    path: '/api/admin/attention',
    guard: 'admin',
    key: ['read', 'operate'],
    summary: 'List what needs attention, the worst first',
    description:
      'Failed messages are those of the last day, and uncertain ones may have arrived; undelivered events are those that wait for a replay.',
    query: noParameters,
    replies: {
      200: z.object({
        items: z.array(
          z
            .object({
              kind: z.enum(KINDS),
              severity: z.enum(['bad', 'warn']).describe('bad: it does not work; warn: it works late or in part'),
              count: z.int().positive(),
              plugin: z.string().nullable().describe('The only plugin it is about'),
              check: z
                .string()
                .optional()
                .describe('Of check_failed the check, as /readyz names it, or mail, telegram, vk'),
              import: z.int().optional().describe('The import that did not go well'),
              type: z
                .enum(ENTITIES.map(e => e.type))
                .optional()
                .describe('What a list that was sent holds'),
              detail: z.string().nullable().describe('What it is, in words of the service'),
              since: time.nullable(),
            })
            .meta({ id: 'Attention' }),
        ),
      }),
    },
  },
});

const list: Handle<typeof attention.list, AttentionParts> = async ({ look }) => {
  const found = [...(await look())];
  const rank = (a: Attention): number => (a.severity === 'bad' ? 0 : KINDS.length) + KINDS.indexOf(a.kind);
  return { status: 200, json: { items: found.sort((a, b) => rank(a) - rank(b)) } };
};

export const attentionRoutes = (parts: AttentionParts): Route[] => serve(attention, parts, { list });
