import { z } from 'zod';
import * as manifest from '../../plugins/manifest.ts';

/** Parts of a manifest as answers show them: what its author left out has its default. */

export const requirement = manifest.requirement.meta({ id: 'Requirement' });
export const httpTrigger = manifest.httpTrigger.meta({ id: 'HttpTrigger' });
export const messengerTrigger = manifest.messengerTrigger.meta({ id: 'MessengerTrigger' });
export const trigger = z.discriminatedUnion('type', [httpTrigger, messengerTrigger]);
export const httpMethod = z.enum(manifest.HTTP_METHODS);
