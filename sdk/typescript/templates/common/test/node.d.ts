/**
 * What tests use of Node, for the editor. For all of Node run `npm install --save-dev @types/node`, name "node" in "types" of
 * tsconfig.json here, and delete this file.
 */
declare const Buffer: {
  from(value: string | Uint8Array, encoding?: string): Uint8Array & { toString(encoding?: string): string };
  byteLength(text: string): number;
};

declare module 'node:test' {
  type TestContext = {
    readonly name: string;
    readonly signal: unknown;
    readonly mock: unknown;
    test: typeof test;
    diagnostic(text: string): void;
    before(run: () => unknown): void;
    after(run: () => unknown): void;
    beforeEach(run: () => unknown): void;
    afterEach(run: () => unknown): void;
    skip(why?: string): void;
    todo(why?: string): void;
  };
  type Run = (t: TestContext) => unknown;
  type Options = { only?: boolean; skip?: boolean | string; timeout?: number; todo?: boolean | string };
  function test(name: string, run: Run): Promise<void>;
  function test(name: string, options: Options, run: Run): Promise<void>;
  function describe(name: string, run: () => unknown): Promise<void>;
  function before(run: () => unknown): void;
  function after(run: () => unknown): void;
  function beforeEach(run: () => unknown): void;
  function afterEach(run: () => unknown): void;

  export { after, afterEach, before, beforeEach, describe, test, test as it };
  export default test;
}

declare module 'node:assert/strict' {
  type Expected = RegExp | object | ((error: unknown) => boolean);
  type Assert = {
    (value: unknown, message?: string): asserts value;
    ok(value: unknown, message?: string): asserts value;
    strictEqual<T>(actual: unknown, expected: T, message?: string): asserts actual is T;
    deepStrictEqual<T>(actual: unknown, expected: T, message?: string): asserts actual is T;
    doesNotThrow(run: () => unknown, message?: string): void;
    doesNotReject(run: Promise<unknown> | (() => Promise<unknown>), message?: string): Promise<void>;
    equal<T>(actual: unknown, expected: T, message?: string): asserts actual is T;
    notEqual(actual: unknown, expected: unknown, message?: string): void;
    deepEqual<T>(actual: unknown, expected: T, message?: string): asserts actual is T;
    notDeepEqual(actual: unknown, expected: unknown, message?: string): void;
    match(text: string, expression: RegExp, message?: string): void;
    doesNotMatch(text: string, expression: RegExp, message?: string): void;
    throws(run: () => unknown, expected?: Expected, message?: string): void;
    rejects(run: Promise<unknown> | (() => Promise<unknown>), expected?: Expected, message?: string): Promise<void>;
    fail(message?: string): never;
  };
  const assert: Assert;
  export default assert;
}
