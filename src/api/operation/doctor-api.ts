import { z } from 'zod';
import { resource } from '../contract/contract.ts';
import { type Handle, serve } from '../contract/endpoint.ts';
import { time } from '../contract/fields.ts';
import type { Route } from '../contract/route.ts';

type Looked = { at: Date; checks: ReadonlyArray<{ name: string; state: 'ok' | 'warn' | 'failed'; detail: string }> };

export type DoctorParts = {
  /** Looks at everything the service needs. */
  look(): Promise<Looked>;
};

/** What the command `doctor` looks at, from the service itself (docs/operating.md "Failures"). */
export const doctor = resource('Doctor', 'What the service needs, looked at one by one.', {
  look: {
    method: 'GET',
    path: '/api/admin/doctor',
    guard: 'admin',
    key: ['operate'],
    summary: 'Look at everything the service needs',
    description:
      'On the host that answers, as plugin-host doctor does on its machine. It may take half a minute where something does not answer; who asks meanwhile, or within five seconds after, gets the same answer.',
    replies: {
      200: z.object({
        looked_at: time,
        checks: z.array(
          z
            .object({
              name: z.string().describe('What was looked at'),
              state: z.enum(['ok', 'warn', 'failed']).describe('warn: it works, and something will be missed'),
              detail: z.string().describe('What was found, and what helps'),
            })
            .meta({ id: 'DoctorCheck' }),
        ),
      }),
    },
  },
});

const look: Handle<typeof doctor.look, DoctorParts> = async parts => {
  const { at, checks } = await parts.look();
  return { status: 200, json: { looked_at: at, checks: [...checks] } };
};

export const doctorRoutes = (parts: DoctorParts): Route[] => serve(doctor, parts, { look });
