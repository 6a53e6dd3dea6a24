import { adminKeys } from './admin-keys-api.ts';
import type { Resource } from './endpoint.ts';

/** Every resource of the API, by the name under which a client has it. */
export const RESOURCES = { adminKeys } as const satisfies Readonly<Record<string, Resource>>;
