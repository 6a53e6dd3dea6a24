import type { z } from 'zod';

/** An address may hold a name and a password, and a credential in its query. */
const withoutLogin = (text: string): string =>
  text.replace(/\/\/[^/?#\s]+@/g, '//(hidden)@').replace(/(:\/\/[^?#\s"]*)[?#][^\s"]+/g, '$1?(hidden)');

/** A value that was refused, as it is shown. */
export function shown(value: unknown, isSecret: boolean): string {
  if (value === null || value === undefined) return 'has no value';
  return isSecret ? 'is (hidden)' : `is ${withoutLogin(JSON.stringify(value))}`;
}

const TYPES: Readonly<Record<string, string>> = { string: 'text', number: 'a number', boolean: 'true or false' };

/** The right form of a value, for a check that does not say it itself. */
function wanted(issue: z.core.$ZodIssue, value: unknown, isSecret: boolean): string {
  if (issue.message.startsWith('must ')) return issue.message;
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  if (issue.code === 'invalid_type') {
    const isPlain = typeof value === 'number' || typeof value === 'boolean';
    const quoted = isSecret ? '' : `, like ${JSON.stringify(`${value}`)}`;
    const hint = issue.expected === 'string' && isPlain ? `: put it in quotes${quoted}` : '';
    return `must be ${TYPES[issue.expected] ?? issue.expected}${hint}`;
  }
  if (issue.code === 'too_small' && issue.origin === 'string') return 'must not be empty';
  return issue.message;
}

/**
 * What is wrong with a value: `is "many"; it must be a whole number from 0 to 65535`.
 *
 * @param isSecret the value is not shown
 */
export function valueProblem(error: z.ZodError, value: unknown, isSecret: boolean): string {
  const [issue] = error.issues;
  const problem = issue === undefined ? 'is invalid' : wanted(issue, value, isSecret);
  return `${shown(value, isSecret)}; ${problem.startsWith('must ') ? 'it ' : ''}${problem}`;
}
