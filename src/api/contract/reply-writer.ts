import { z } from 'zod';
import { toCamelCase } from '../../base/camel-case.ts';

/** `created_at` as `createdAt`. */
type Camel<Name> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name;

/** A value of a reply with the names of its fields in camelCase, as the code has them. */
export type Unwritten<Value> = Value extends Date
  ? Value
  : Value extends ReadonlyArray<infer Item>
    ? ReadonlyArray<Unwritten<Item>>
    : Value extends object
      ? { readonly [Name in keyof Value as Camel<Name>]: Unwritten<Value[Name]> }
      : Value;

type Write = (value: unknown) => unknown;

/** How a value of a schema is written; null: as it is. */
function writeOf(schema: z.core.$ZodType): Write | null {
  if (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional) {
    const inner = writeOf(schema.unwrap());
    return inner === null ? null : value => (value == null ? value : inner(value));
  }
  if (schema instanceof z.ZodArray) {
    const item = writeOf(schema.element);
    return item === null ? null : value => (Array.isArray(value) ? value.map(item) : value);
  }
  return schema instanceof z.ZodObject ? writeFields(schema) : null;
}

function writeFields(schema: z.ZodObject): Write {
  const fields = Object.entries(schema.shape).map(([name, field]) => {
    return { name, from: toCamelCase(name), write: writeOf(field) };
  });
  return value => {
    const given = new Map(Object.entries(value ?? {}));
    const written: Record<string, unknown> = {};
    for (const { from, name, write } of fields) {
      const member = given.get(from);
      if (member !== undefined) written[name] = write === null ? member : write(member);
    }
    return written;
  };
}

/**
 * Writes values of our own as a schema of replies has them: `createdAt` becomes `created_at`. Members that the schema does
 * not name are left out, so that nothing is answered that the contract does not say.
 *
 * @param schema an object of the contract; members that are records or unions are answered as they are
 */
export function replyWriter<Schema extends z.ZodObject>(
  schema: Schema,
): (value: Unwritten<z.input<Schema>>) => z.input<Schema> {
  const write = writeFields(schema);
  return value => write(value) as z.input<Schema>;
}
