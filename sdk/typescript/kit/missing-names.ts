/** Names that programs for a browser or for Node take for granted, and what a plugin does instead. */
const ADVICE: ReadonlyArray<readonly [advice: string, names: readonly string[]]> = [
  [
    'a plugin has no network of its own; use ctx.HTTPRequest',
    ['fetch', 'XMLHttpRequest', 'WebSocket', 'EventSource', 'Request', 'Response', 'Headers'],
  ],
  [
    'a plugin does not run in a browser; what needs one belongs in its frontend',
    [
      ...['window', 'self', 'document', 'navigator', 'location', 'localStorage', 'sessionStorage', 'alert'],
      ...['HTMLElement', 'DOMParser', 'Worker'],
    ],
  ],
  [
    "a plugin has the language and the kit, not Node's API",
    ['process', 'require', 'module', '__dirname', '__filename'],
  ],
  ['use Uint8Array and TextEncoder', ['Buffer']],
  ['use Uint8Array.fromBase64 and toBase64', ['atob', 'btoa']],
  ['use globalThis', ['global']],
  ['use setTimeout', ['setImmediate']],
  ['use Date.now', ['performance']],
  [
    'it is not part of the language; bring it with a package',
    [
      ...['URL', 'URLSearchParams', 'Intl', 'Blob', 'File', 'FormData', 'AbortController', 'AbortSignal'],
      ...['ReadableStream', 'structuredClone', 'Event', 'EventTarget'],
    ],
  ],
];

/** What a plugin does instead of using this name of a browser or of Node; undefined for other names. */
export const insteadOf = (name: string): string | undefined => ADVICE.find(([, names]) => names.includes(name))?.[0];

/**
 * What to do about an error whose words do not say it: a name of a browser or of Node that is missing, and arithmetic with an integer
 * of more than 53 bits.
 *
 * @param text of an error: `ReferenceError: document is not defined`
 * @returns the advice in brackets; empty for other errors
 */
export function adviceFor(text: string): string {
  if (/^TypeError: cannot (?:convert|mix) (?:a )?BigInt/i.test(text))
    return ' (ids, and whole numbers beyond 2^53 in JSON, are a bigint: reckon with 1n, or convert them with Number)';
  const name = /^ReferenceError: '?(\w+)'? is not defined$/.exec(text)?.[1];
  const advice = name === undefined ? undefined : insteadOf(name);
  return advice === undefined ? '' : ` (${advice})`;
}
