type Waiting = { bytes: number; cut: () => void };

/**
 * Bytes of answers that clients have not taken yet. Clients that ask for much and read nothing would otherwise fill the
 * memory: when too much waits, the connection of the answer that has waited longest is closed.
 */
export class WaitingAnswers {
  readonly #bytesMax: number;
  readonly #onCut: () => void;
  /** The one that has waited longest comes first. */
  readonly #waiting = new Map<object, Waiting>();
  #bytes = 0;

  /** @param onCut called when connections were closed because too much waits */
  constructor(bytesMax: number, onCut: () => void) {
    this.#bytesMax = bytesMax;
    this.#onCut = onCut;
  }

  /** Bytes that wait now. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Counts an answer until it is released, and cuts off others when too much waits.
   *
   * @param of what it is released by
   * @param cut closes its connection
   */
  hold(of: object, bytes: number, cut: () => void): void {
    this.#waiting.set(of, { bytes, cut });
    this.#bytes += bytes;
    if (this.#bytes <= this.#bytesMax) return;
    for (const [other, waiting] of this.#waiting) {
      if (this.#bytes <= this.#bytesMax || other === of) break;
      this.release(other);
      waiting.cut();
    }
    this.#onCut();
  }

  release(of: object): void {
    this.#bytes -= this.#waiting.get(of)?.bytes ?? 0;
    this.#waiting.delete(of);
  }
}
