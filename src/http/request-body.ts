import type { HttpResponse } from 'uWebSockets.js';
import { Readable } from 'node:stream';
import { ServiceError } from '../base/errors.ts';
import type { IntakeShare } from './intake.ts';
import type { TakeChunk } from './message.ts';

/**
 * The body of one request with back pressure. It is taken from the first moment on, or the library loses it: what comes before a reader
 * wants it is kept, and the client is made to wait.
 */
export class RequestBody {
  readonly #res: HttpResponse;
  readonly #share: IntakeShare;
  readonly #held: Buffer[] = [];
  #take: TakeChunk | null = null;
  #settle: { done(): void; fail(error: Error): void } | null = null;
  /** Chunks that are being waited for. */
  #waiting = 0;
  #ended = false;
  #paused = false;
  #failed: Error | null = null;

  /** @param share what is held counts against it until it is handed on */
  constructor(res: HttpResponse, share: IntakeShare) {
    this.#res = res;
    this.#share = share;
  }

  /** @param chunk good for the time of this call */
  receive(chunk: ArrayBuffer, isLast: boolean): void {
    this.#ended = isLast;
    if (this.#failed === null) this.#came(new Uint8Array(chunk));
    // Several chunks may come out of one read of the socket, the last one after a pause.
    if (isLast && this.#failed === null) this.#resume();
    // A failed exchange was answered, or will be: the response may not be touched any more.
    else if (this.#failed === null && (this.#waiting > 0 || this.#take === null)) this.#pause();
    this.#settleIfDone();
  }

  #pause(): void {
    if (!this.#paused) this.#res.pause();
    this.#paused = true;
  }

  #resume(): void {
    if (this.#paused) this.#res.resume();
    this.#paused = false;
  }

  /** @param chunk good for the time of this call */
  #came(chunk: Uint8Array): void {
    try {
      if (this.#take === null) {
        this.#share.take(chunk.length);
        this.#held.push(Buffer.from(chunk));
        return;
      }
      const wait = this.#take(chunk);
      if (wait === null) return;
      this.#waiting++;
      wait.then(
        () => {
          this.#waiting--;
          if (this.#waiting > 0 || this.#failed !== null) return;
          this.#resume();
          this.#settleIfDone();
        },
        (error: Error) => {
          this.#waiting--;
          this.fail(error);
        },
      );
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #settleIfDone(): void {
    if (this.#ended && this.#waiting === 0 && this.#failed === null) this.#settle?.done();
  }

  /** The client has gone away, or the rest is not needed: it is read and dropped. */
  fail(error: Error): void {
    if (this.#failed !== null) return;
    this.#failed = error;
    this.#held.length = 0;
    this.#settle?.fail(error);
  }

  /** The connection is gone. */
  aborted(): void {
    this.#paused = false;
    this.fail(new ServiceError('malformed_request', 'the client went away in the middle of the upload'));
  }

  /** Lets the client send on: the request is answered, and what is left of the body must not stand in the connection. */
  release(): void {
    // Before it counts as failed: afterwards the connection is left alone.
    this.#resume();
    this.fail(new Error('the request was answered'));
  }

  /**
   * Hands the body on as it comes.
   *
   * @param take called with each chunk, which is good for the time of the call; a promise makes the client wait until it is kept
   * @returns when all of it was taken
   * @throws what `take` throws, or ServiceError when the client goes away
   */
  async pump(take: TakeChunk): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      if (this.#failed !== null) return reject(this.#failed);
      this.#settle = { done: resolve, fail: reject };
      this.#take = take;
      for (const chunk of this.#held.splice(0)) {
        this.#share.give(chunk.length);
        if (this.#failed === null) this.#came(chunk);
      }
      if (this.#waiting === 0) this.#resume();
      this.#settleIfDone();
    });
  }

  /** The body as a stream, for libraries that read one. */
  stream(): Readable {
    let wanted: (() => void) | null = null;
    const stream = new Readable({
      read() {
        wanted?.();
        wanted = null;
      },
      destroy(error, done) {
        wanted?.();
        done(error);
      },
    });
    // A reader hears of its end; without a reader nothing has to.
    stream.on('error', () => {});
    this.pump(chunk => {
      if (stream.destroyed || stream.push(Buffer.from(chunk))) return null;
      return new Promise(resolve => {
        wanted = resolve;
      });
    }).then(
      () => stream.push(null),
      (error: Error) => stream.destroy(error),
    );
    return stream;
  }
}
