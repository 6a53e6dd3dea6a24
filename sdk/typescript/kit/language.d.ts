/** What a plugin finds besides the language (`lib: ["es2024"]`), and what the engine has of newer proposals. */

declare const console: Readonly<Record<'debug' | 'log' | 'info' | 'warn' | 'error', (...values: unknown[]) => void>>;
declare const crypto: { getRandomValues<T extends ArrayBufferView>(into: T): T; randomUUID(): string };
/** @param run also the function a new promise is ended with: `new Promise<void>(done => setTimeout(done, 100))` */
declare function setTimeout(run: (_: undefined) => void, milliseconds?: number): number;
declare function setTimeout<A extends unknown[]>(run: (...args: A) => void, milliseconds: number, ...args: A): number;
declare function setInterval(run: (_: undefined) => void, milliseconds?: number): number;
declare function setInterval<A extends unknown[]>(run: (...args: A) => void, milliseconds: number, ...args: A): number;
declare function clearTimeout(id: number | undefined): void;
declare function clearInterval(id: number | undefined): void;
declare function queueMicrotask(run: () => void): void;
declare class TextEncoder {
  readonly encoding: 'utf-8';
  encode(text?: string): Uint8Array;
}
declare class TextDecoder {
  constructor(label?: 'utf-8', options?: { fatal?: boolean });
  readonly encoding: 'utf-8';
  decode(bytes?: ArrayBuffer | ArrayBufferView): string;
}
interface JSON {
  /** A piece of JSON that `JSON.stringify` writes as it is. */
  rawJSON(text: string): object;
  parse(
    text: string,
    reviver: (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
}
interface Uint8Array {
  toHex(): string;
  toBase64(options?: { alphabet?: 'base64' | 'base64url'; omitPadding?: boolean }): string;
}
interface Uint8ArrayConstructor {
  fromBase64(text: string, options?: { alphabet?: 'base64' | 'base64url' }): Uint8Array;
  fromHex(text: string): Uint8Array;
}
interface ErrorConstructor {
  stackTraceLimit: number;
}
