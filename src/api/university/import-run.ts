import { z } from 'zod';
import { ENTITIES } from '../../university/entities.ts';
import { IMPORT_KINDS, IMPORT_STATES, type ImportRun, TYPE_STATES } from '../../university/import-log.ts';
import { STARTERS, starterOf } from '../../university/starter.ts';
import { id, time } from '../contract/fields.ts';
import { replyWriter } from '../contract/reply-writer.ts';

const count = z.int();

/** An import, as the log has it. */
export const importRun = z
  .object({
    id,
    kind: z.enum(IMPORT_KINDS),
    state: z.enum(IMPORT_STATES),
    started_by: z.string(),
    starter: z
      .object({ kind: z.enum(STARTERS), name: z.string().nullable().describe('An email, or the name of a key') })
      .describe('Who or what started it'),
    started_at: time,
    finished_at: time.nullable(),
    problem: z.string().nullable(),
    types: z.array(
      z.object({
        type: z.enum(ENTITIES.map(e => e.type)),
        state: z.enum(TYPE_STATES),
        total: count,
        success: count,
        created: count,
        updated: count,
        deactivated: count,
        failed: count,
        brake: z
          .object({ ending: count, active: count })
          .nullable()
          .describe('How many of the active records the list would make inactive that the brake has stopped'),
        problem: z.string().nullable(),
        started_at: z.string().nullable(),
        finished_at: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'ImportRun' });

const writeRun = replyWriter(importRun);
export const importRunJson = (r: ImportRun) => writeRun({ ...r, starter: starterOf(r.startedBy) });
