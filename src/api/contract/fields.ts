import { z } from 'zod';
import { describeAs } from './json-schema.ts';

/** Fields that many bodies and answers have. */

/** A time in an answer. */
export const time = z.date();
/** The id of a row. */
export const id = z.int().positive();
/** An address of mail. */
export const email = z
  .string()
  .max(254)
  .regex(/^[^\s@]+@[^\s@]+$/, 'must be an email address');
/** A place that is odd and does not stop the request. */
export const warning = z.object({ pointer: z.string(), message: z.string() }).meta({ id: 'Warning' });

export const pluginId = z.string().describe('Id of the plugin');
/** A role by its name. */
export const roleName = describeAs(
  z.string().regex(/^[\p{L}\p{N}_.:-]{1,100}$/u, 'must be letters, digits, _ . : and -, at most 100'),
  // Without the pattern: not every reader of the document knows classes of Unicode.
  { type: 'string', minLength: 1, maxLength: 100, description: 'Letters, digits, _ . : and -' },
);

/** When something ends: a time that has not passed; null for never. */
export const endTime = describeAs(
  z.iso
    .datetime({ offset: true, message: 'must be a time like 2027-01-31T12:00:00Z' })
    .transform(text => new Date(text))
    .refine(date => date.getTime() > Date.now(), 'must lie in the future'),
  { type: 'string', format: 'date-time', description: 'A time in the future' },
).nullable();

/** An object whose members are not the API's to say. */
export const anyObject = describeAs(z.custom<object>(), { type: 'object', additionalProperties: true });
