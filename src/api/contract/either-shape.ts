import { z } from 'zod';
import { describeAs, toJsonSchema } from './json-schema.ts';

const has = (value: unknown, name: string): boolean => typeof value === 'object' && value !== null && name in value;

/**
 * A body of one of two shapes. A member that only one of them has tells which one is meant, so that its errors are those of that shape.
 *
 * @param member name of the member
 * @param having the shape that has it
 * @param lacking the other one
 */
export function eitherShape<A extends z.ZodType, B extends z.ZodType>(
  member: string,
  having: A,
  lacking: B,
): z.ZodType<z.output<A> | z.output<B>, z.input<A> | z.input<B>> {
  type Output = z.output<A> | z.output<B>;
  const schema = z.custom<z.input<A> | z.input<B>>().transform((value, ctx): Output => {
    const parsed = (has(value, member) ? having : lacking).safeParse(value);
    if (parsed.success) return parsed.data;
    for (const issue of parsed.error.issues) ctx.addIssue({ ...issue });
    return z.NEVER;
  });
  const { $schema: _, ...described } = toJsonSchema(z.union([having, lacking]), 'input');
  return describeAs(schema, described);
}
