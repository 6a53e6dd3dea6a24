/** So many at once, and as many more as time brings. Time is passed in, in ms. */
export class TokenBucket {
  readonly #perMs: number;
  readonly #burst: number;
  #tokens: number;
  #at: number;

  constructor(perSecond: number, burst: number, now: number) {
    this.#perMs = perSecond / 1000;
    this.#burst = burst;
    this.#tokens = burst;
    this.#at = now;
  }

  /** Ms until there is one; 0: now. */
  waitMs(now: number): number {
    this.#fill(now);
    const heldMs = Math.max(0, this.#at - now);
    return this.#tokens >= 1 ? 0 : Math.ceil(heldMs + (1 - this.#tokens) / this.#perMs);
  }

  take(now: number): void {
    this.#fill(now);
    this.#tokens -= 1;
  }

  /** Gives no token before a time. */
  holdUntil(at: number): void {
    this.#tokens = Math.min(this.#tokens, 0);
    this.#at = Math.max(this.#at, at);
  }

  /** Whether it is as it was made. */
  isFull(now: number): boolean {
    this.#fill(now);
    return this.#tokens >= this.#burst;
  }

  #fill(now: number): void {
    if (now <= this.#at) return;
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#at) * this.#perMs);
    this.#at = now;
  }
}
