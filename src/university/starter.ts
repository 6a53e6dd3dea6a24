import type { Actor } from '../audit/audit-log.ts';

/** Who or what began an import; the log keeps it as one text. */
export const STARTERS = ['administrator', 'admin_key', 'import_key', 'setup', 'schedule'] as const;

const KEY = /^administration key "(.*)"$/s;
const SETUP = 'setup mode';
const IMPORT_KEY = 'admin.api_key';
/** A pull of the schedule. */
export const SCHEDULE = 'schedule';

/** The text that the log keeps of an actor. */
export const starterText = ({ kind, name }: Actor): string =>
  kind === 'admin_key' ? `administration key "${name}"` : kind === 'setup' ? SETUP : name;

/** What the text of the log stands for, and the name that belongs to it: an email, or what a key is called. */
export function starterOf(text: string): { kind: (typeof STARTERS)[number]; name: string | null } {
  const key = KEY.exec(text)?.[1];
  if (key !== undefined) return { kind: 'admin_key', name: key };
  if (text === SETUP) return { kind: 'setup', name: null };
  if (text === IMPORT_KEY) return { kind: 'import_key', name: null };
  return text === SCHEDULE ? { kind: 'schedule', name: null } : { kind: 'administrator', name: text };
}
