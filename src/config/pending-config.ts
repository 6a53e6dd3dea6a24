import { z } from 'zod';

/** How the configuration as it is written now differs from the one in force: what the next reload or start would find. */
export const pendingConfig = z.object({
  changed: z.array(z.string()).describe('Keys with another value'),
  restart: z.array(z.string()).describe('Those of them that only a restart can apply; a reload is refused meanwhile'),
  problem: z.string().nullable().describe('A mistake for which a reload and the next start would fail'),
});
export type PendingConfig = z.infer<typeof pendingConfig>;
