import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import type { Request } from '../../http/message.ts';
import { describeAs } from './json-schema.ts';

/** What an id in a path names, for the refusal of one that can be none. */
const nouns = z.registry<{ noun: string }>();

/**
 * The numeric id of something in a path.
 *
 * @param noun what it is the id of: "user"
 */
export function idParam(noun: string): z.ZodType<number, string> {
  const schema = z
    .string()
    .regex(/^[1-9]\d{0,15}$/)
    .transform(Number)
    .refine(Number.isSafeInteger);
  nouns.add(schema, { noun });
  return describeAs(schema, {
    type: 'integer',
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: `Id of the ${noun}`,
  });
}

/**
 * The `:name` segments of a request.
 *
 * @throws ServiceError `not_found` when one cannot be what it names
 */
export function parseParams(shapes: Readonly<Record<string, z.ZodType>>, request: Request): Record<string, unknown> {
  const out: Record<string, unknown> = { ...request.params };
  for (const [name, shape] of Object.entries(shapes)) {
    const parsed = shape.safeParse(request.params[name]);
    if (!parsed.success)
      throw new ServiceError('not_found', `there is no ${nouns.get(shape)?.noun ?? name} ${request.params[name]}`);
    out[name] = parsed.data;
  }
  return out;
}
