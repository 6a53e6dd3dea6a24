/**
 * The environment of a program that gets nothing else from this process: where to find programs, and what makes Node start fast
 * (test/support/sources.js), and the mark of the file (test/run-files.ts).
 */
export const BARE_ENV: Record<string, string> = Object.fromEntries(
  ['PATH', 'NODE_OPTIONS', 'NODE_COMPILE_CACHE', 'TEST_API', 'TEST_FILE_MARK'].flatMap(name => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  }),
);
