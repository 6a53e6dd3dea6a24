import { z } from 'zod';

export type JsonSchema = z.core.JSONSchema.BaseSchema;

/** Schemas from which zod cannot make the JSON Schema: a text that becomes a number, a time, a number of 64 bits. */
const explicit = z.registry<{ schema: JsonSchema }, z.core.$ZodType>();

/** Gives a zod schema the JSON Schema that stands in the document. */
export function describeAs<S extends z.ZodType>(schema: S, as: JsonSchema): S {
  explicit.add(schema, { schema: as });
  return schema;
}

const DATE: JsonSchema = { type: 'string', format: 'date-time' };

/**
 * The JSON Schema (draft 2020-12) of a zod schema.
 *
 * @param io `input`: what a client sends; `output`: what it is answered, where further members are not allowed
 */
export function toJsonSchema(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  return z.toJSONSchema(schema, {
    io,
    target: 'draft-2020-12',
    unrepresentable: 'any',
    override({ jsonSchema, zodSchema }) {
      const given = explicit.get(zodSchema)?.schema ?? (zodSchema._zod.def.type === 'date' ? DATE : undefined);
      if (given === undefined) return;
      for (const name of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, name);
      Object.assign(jsonSchema, given);
    },
  });
}
