import { z } from 'zod';

/** The contents of a recording, as it is stored, answered by the API and read for a replay (docs/plugins.md "Recordings"). */

const recordedValue = z
  .union([z.number(), z.string(), z.object({ base64: z.string() }), z.object({ int64: z.string() })])
  .describe('Bytes are text where they are UTF-8')
  .meta({ id: 'RecordedValue' });

const recordedCall = z.object({
  function: z.string(),
  arguments: z.array(recordedValue),
  code: z.int().describe('Below zero an error'),
  data: recordedValue.nullable(),
  body: recordedValue.nullable(),
});

export const recordedExecution = z
  .object({
    format: z.literal(1),
    plugin_id: z.string(),
    version: z.string(),
    module_sha256: z.string().optional().describe('Of the module that ran, as it was uploaded'),
    trigger: z.string(),
    event: z.string().describe('The event, as JSON text'),
    body: recordedValue.nullable(),
    config: z.record(z.string(), z.string()).describe('The configuration; secrets are hidden'),
    calls: z.array(recordedCall),
    drawn: z.string().optional().describe('Readings of clocks and random bytes, in the order they were drawn (base64)'),
    outcome: z.object({
      kind: z.string(),
      failure: z.string(),
      status: z.int(),
      headers: z.string().describe('Names and values, each followed by NUL'),
      body: recordedValue,
    }),
  })
  .meta({ id: 'Recording' });

export type RecordedExecution = z.infer<typeof recordedExecution>;
/** Bytes as text where they are text; an i64 with all its digits. */
export type RecordedValue = z.infer<typeof recordedValue>;
export type RecordedCall = z.infer<typeof recordedCall>;
