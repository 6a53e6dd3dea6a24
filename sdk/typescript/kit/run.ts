import { Context } from './context.ts';
import { type HostEvent, readEvent } from './event.ts';
import './globals.ts';
import { runNextTimer } from './globals.ts';
import * as raw from './host-functions.js';
import { type Handler, manifestOf, type Plugin } from './manifest.ts';
import { adviceFor } from './missing-names.ts';
import { authorStack } from './positions.ts';

/** Results of an execution. */
const DONE = 0;
const GO_ON = 1;
const FAILED = -7;

/** Text of an error with the author's lines. */
function describeError(error: unknown): string {
  if (!(error instanceof Error)) return `${typeof error === 'string' ? error : JSON.stringify(error)} was thrown`;
  const stack = authorStack(error.stack ?? '');
  const cause = error.cause === undefined ? '' : `\ncaused by ${describeError(error.cause)}`;
  const text = `${error.name}: ${error.message}`;
  return `${text}${adviceFor(text)}${stack === '' ? '' : `\n${stack}`}${cause}`;
}

/** Where code ran when its time was used up. */
function placeOf(error: unknown): string {
  const stack = error instanceof Error ? authorStack(error.stack ?? '') : '';
  return `the time of the execution is used up: is there an endless loop?${stack === '' ? '' : `\n${stack}`}`;
}

/** What the execution does at this moment. */
let state: 'done' | 'waiting' | 'failed' = 'done';
/** Promises that were rejected, and have no handler yet. */
const unhandled = new Map<Promise<unknown>, unknown>();

function failWith(text: string): void {
  if (state === 'failed') return;
  state = 'failed';
  raw.fail(text);
}

function begin(handler: Handler, ctx: Context): void {
  state = 'done';
  try {
    const result = handler(ctx);
    if (!(result instanceof Promise)) return;
    state = 'waiting';
    result.then(
      () => {
        if (state === 'waiting') state = 'done';
      },
      error => failWith(describeError(error)),
    );
  } catch (error) {
    failWith(describeError(error));
  }
}

/** What is left when no job of the engine waits. @returns GO_ON when jobs may wait again, otherwise the result */
function settle(): number {
  if (state !== 'failed' && unhandled.size > 0) {
    const [reason] = unhandled.values();
    failWith(`a promise was rejected, and nothing handles it: ${describeError(reason)}`);
  }
  if (state === 'failed') return FAILED;
  try {
    // The handler has ended: what it has not waited for is not done.
    if (state === 'done') return DONE;
    if (runNextTimer()) return GO_ON;
  } catch (error) {
    failWith(describeError(error));
    return FAILED;
  }
  failWith('the handler waits for a promise that nothing will settle');
  return FAILED;
}

let isDefined = false;

/**
 * Declares the plugin; called once at the top level of the entry file.
 *
 * @example
 * definePlugin({
 *   ID: 'hello', Name: 'Hello', Version: '1.0.0',
 *   Triggers: [{ Name: 'greet', Type: TriggerHTTP, Path: '/greet', Methods: ['GET'], Handler: ctx => ctx.JSON(200, { message: 'hello' }) }],
 * });
 */
export function definePlugin(plugin: Plugin): void {
  if (isDefined) throw new Error('definePlugin is called twice; a plugin is defined once');
  isDefined = true;
  const handlers = new Map<string, Handler>(plugin.Triggers.map(t => [t.Name, t.Handler]));
  for (const t of plugin.Triggers)
    if (typeof t.Handler !== 'function') throw new TypeError(`the trigger "${t.Name}" has no Handler`);
  const functions = new Map(Object.entries(plugin.Functions ?? {}));
  const handlerOf = ({ call, trigger }: HostEvent): Handler | undefined =>
    call === undefined ? handlers.get(trigger) : functions.get(call.function);
  raw.entries(
    () => {
      const event = readEvent(raw.input_text(0) ?? '');
      raw.deadline(event.deadline_ms);
      const handler = handlerOf(event);
      if (handler !== undefined) return begin(handler, new Context(event));
      state = 'done';
      const what = event.call === undefined ? `trigger "${event.trigger}"` : `function "${event.call.function}"`;
      failWith(`the plugin has no ${what}`);
    },
    settle,
    () => {
      state = 'done';
      raw.output(manifestOf(plugin));
    },
    (promise, reason, isHandled) => {
      if (isHandled) unhandled.delete(promise);
      else unhandled.set(promise, reason);
    },
    error => failWith(placeOf(error)),
  );
  // What the first event would make, shapes and strings, is made by the start.
  const warm = new Context(readEvent(WARM_EVENT));
  JSON.stringify({ path: warm.HTTP.Path, auth: warm.HTTP.Auth });
}

const WARM_EVENT =
  '{"kind":"http","trigger":"","request_id":"","deadline_ms":0,"http":{"method":"GET","path":"/","query":{},"headers":{},"remote_addr":"","params":{},"auth":{"kind":"user","user_id":1}}}';

Error.stackTraceLimit = 20;
