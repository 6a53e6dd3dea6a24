import type { FieldError } from '../base/errors.ts';

/** What a finding is about. Clients word these; a stored finding may have a rule of another release. */
export const FINDING_RULES = [
  'command',
  'compile',
  'compile-memory',
  'compile-time',
  'deprecated',
  'described',
  'entry-signature',
  'frontend',
  'gc-type',
  'import-kind',
  'import-newer',
  'import-signature',
  'import-unknown',
  'locals',
  'malformed',
  'manifest',
  'memory',
  'memory-initial',
  'memory-not-exported',
  'memory64',
  'multi-memory',
  'nesting',
  'newer-gate',
  'no-entry',
  'no-memory',
  'not-core-module',
  'not-wasm',
  'shared-memory',
  'signature',
  'start',
  'table-size',
  'threads',
  'time',
  'too-many',
  'truncated',
  'undeclared',
  'unknown-instruction',
  'unknown-member',
  'unknown-section',
  'unused',
] as const;
export type FindingRule = (typeof FINDING_RULES)[number];

/** A finding of the gate, as a sentence. `refusal` stops the upload; `warning` and `note` inform the administrator. */
export type Finding = { level: 'refusal' | 'warning' | 'note'; rule: FindingRule; message: string; where?: string };

/** Findings about members of a manifest that have no effect. */
export const unknownMemberFindings = (unknown: readonly FieldError[]): Finding[] =>
  unknown.map(({ message, pointer }) => ({
    level: 'warning',
    rule: 'unknown-member',
    message,
    where: `manifest ${pointer}`,
  }));
