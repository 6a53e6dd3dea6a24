import { builtinModules } from 'node:module';

/** What TypeScript, Node and browsers have and a plugin in AssemblyScript does not, and what is right instead. */

const NODE = "a plugin has the language and the kit, not Node's API";
const NAMES: ReadonlyArray<[advice: string, names: RegExp]> = [
  [
    'a plugin has no network of its own; use ctx.HTTPRequest',
    /^(fetch|XMLHttpRequest|WebSocket|EventSource|Request|Response|Headers)$/,
  ],
  [
    'a plugin does not run in a browser; what needs one belongs in its frontend',
    /^(window|self|document|navigator|location|localStorage|sessionStorage|alert)$/,
  ],
  [NODE, /^(process|require|module|Buffer|__dirname|__filename)$/],
  [
    'nothing happens later: an execution ends with its handler',
    /^(set|clear)(Timeout|Interval|Immediate)$|^(Promise|queueMicrotask)$/,
  ],
];

/** Of lines with a mistake in their form. */
const LANGUAGE: ReadonlyArray<[advice: string, line: RegExp]> = [
  ['AssemblyScript has no async: functions of the host answer at once', /\b(?:async|await)\b/],
  ['AssemblyScript has no ?? and no ?.: compare with null', /\?\?|\?\./],
  ['AssemblyScript has no destructuring', /\b(?:const|let|var)\s*[{[]/],
  ['AssemblyScript has no for ... of: count an index', /\bfor\s*\([^;]*\bof\b/],
  ['AssemblyScript catches nothing: look at the result before it is used', /\b(?:try|catch|finally)\b/],
  ['search with indexOf and split', /[=(,]\s*\/[^/*]/],
];
/** Numbers of the compiler for syntax errors (1003 and above), and for what its language does not have (100). */
const FORM = new Set([100, 1003, 1005, 1109, 1110, 1127, 1128]);

function adviceOf(code: number, message: string, line: string): string | undefined {
  const [, name] = /^Cannot find name '(\w+)'/.exec(message) ?? [];
  if (name !== undefined) return NAMES.find(([, names]) => names.test(name))?.[0];
  const [, file = ''] = /^File '~lib\/(?:node:)?([\w@/-]+)\.ts' not found/.exec(message) ?? [];
  if (builtinModules.includes(file)) return NODE;
  if (/^(@plugin-host|plugin-host)\b/.test(file)) return 'a plugin imports its kit from "@plugin-host/sdk"';
  if (message.includes('Closures')) return 'pass what it needs as an argument, or keep it at the top level of the file';
  return FORM.has(code) ? LANGUAGE.find(([, shape]) => shape.test(line))?.[0] : undefined;
}

/**
 * What helps against a mistake that the compiler has found.
 *
 * @param line of the source that it is about
 * @returns the advice in brackets; empty for other mistakes
 */
export function adviceOn(code: number, message: string, line: string): string {
  const advice = adviceOf(code, message, line);
  return advice === undefined ? '' : ` (${advice})`;
}
