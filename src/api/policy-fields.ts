import { z } from 'zod';

/** What answers say of policies. */

/** A place in a policy: characters from its begin, and the line and column of the first of them. */
export const position = z
  .object({ start: z.int(), end: z.int(), line: z.int(), column: z.int() })
  .meta({ id: 'PolicyPosition' });
/** A mistake of a policy. */
export const policyProblem = z.object({ message: z.string(), position }).meta({ id: 'PolicyProblem' });
/** What is odd about a policy although it may be saved. */
export const policyWarning = z
  .object({ pointer: z.string(), message: z.string(), position: position.optional() })
  .meta({ id: 'PolicyWarning' });
