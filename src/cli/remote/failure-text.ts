import { messageOf, OperatorError } from '../../base/errors.ts';

const KINDS: Readonly<Record<number, string>> = { 2: 'usage', 3: 'refused' };

/**
 * What a command that failed writes to standard error: a line for people or, with `--json`, one JSON object on a line of its own
 * (docs/operating.md "JSON for programs").
 *
 * @param help what to do about it, added to the message
 */
export function failureText(error: unknown, json: boolean, help: string): string {
  const isExpected = error instanceof OperatorError || help !== '';
  const stack = isExpected || !(error instanceof Error) ? undefined : error.stack;
  const message = `${messageOf(error)}${help}`;
  if (!json) return `plugin-host: ${message}\n${stack === undefined ? '' : `${stack}\n`}`;
  const exitCode = exitCodeOf(error);
  const facts = error instanceof OperatorError ? error.facts : {};
  const shown = { kind: KINDS[exitCode] ?? 'failed', exit_code: exitCode, message, ...facts, stack };
  return `${JSON.stringify({ error: shown })}\n`;
}

/** With which a command ends that failed. */
export const exitCodeOf = (error: unknown): number => (error instanceof OperatorError ? error.exitCode : 1);
