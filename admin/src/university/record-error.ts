import type { Schemas } from '../api/client.ts';

/** What is wrong, without the place, which has columns of its own. */
export const wrongOf = ({ message }: Schemas['RecordError']): string => message.replace(/^\/\d+(\/\S+)? /, '');
