/** One thing looked at. `warn`: it works, and something will be missed. */
export type Check = { name: string; state: 'ok' | 'warn' | 'failed'; detail: string };
